/*
 * The built-in rules as data: each has a source and examples, and every example comes out as its
 * file says, as a text, inside of JSON, and in any pieces.
 */
#include "unit/redacted.h"
#include "unit/unit.h"

static size_t match_count, not_count;

TestSuite(redact_rules, .init = redacted_setup, .fini = redacted_teardown);

static void check(const bp_rule *rule, bp_redact_form form, const char *text,
                  const char *expected) {
    static const size_t pieces[] = {1 << 20, 1, 7};
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        bp_buffer out;
        redacted(redactors[rule->is_off], form, text, strlen(text), pieces[i], &out);
        redacted_without_tags(out.data);
        cr_expect(strcmp(out.data, expected) == 0, "%s: %s\n  became %s\n  not    %s", rule->id,
                  text, out.data, expected);
        bp_buffer_release(&out);
    }
}

/* As a member of JSON, its lines with `\n`, `is_hard`: each letter outside of « and » as \u00XX. */
static void append_json(bp_buffer *out, const char *text, bool is_hard) {
    bp_buffer_clear(out);
    (void)bp_buffer_append_text(out, "{\n  \"at\": 4012888888881881,\n  \"message\": \"");
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte >= 0x80) {
            (void)bp_buffer_append_char(out, *text);
        } else if (is_hard || byte < 0x20) {
            (void)bp_buffer_printf(out, "\\u%04x", byte);
        } else {
            (void)bp_buffer_printf(out, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
        }
    }
    (void)bp_buffer_append_text(out, "\"\n}\n");
    cr_assert(eq(int, out->status, BUGPACK_OK));
}

/* The bytes of a message, and which of them are a secret. */
static size_t read_message(const char *text, unsigned char *bytes, bool *is_secret) {
    size_t size = 0;
    bool is_inside = false;
    while (*text != '\0') {
        unsigned value = (unsigned char)*text;
        int length = 1;
        if (strncmp(text, "«", 2) == 0 || strncmp(text, "»", 2) == 0) {
            is_inside = strncmp(text, "«", 2) == 0;
            text += 2;
            continue;
        }
        if (text[0] == '\\' && text[1] == 'x') {
            cr_assert(eq(int, sscanf(text, "\\x%2x", &value), 1));
            length = 4;
        } else if (text[0] == '\\' && (text[1] == 'r' || text[1] == 'n')) {
            value = text[1] == 'r' ? '\r' : '\n';
            length = 2;
        }
        is_secret[size] = is_inside;
        bytes[size++] = (unsigned char)value;
        text += length;
    }
    return size;
}

/* An example of a rule for traffic: behind another message too, and with more behind it. */
static void run_message(const bp_rule *rule, const char *text) {
    unsigned char bytes[1024], found[1200];
    bool is_secret[1024];
    size_t size = read_message(text, bytes, is_secret);
    for (size_t before = 0; before < 200; before += 99) {
        memset(found, '\n', sizeof found);
        memcpy(found + before, bytes, size);
        cr_assert(zero(int, bp_redactor_overwrite(redactors[rule->is_off], found,
                                                  before + size + before, 0, sizeof found)));
        for (size_t i = 0; i < size; i++) {
            bool is_replaced = found[before + i] != bytes[i];
            cr_expect(is_replaced == is_secret[i] || (is_secret[i] && found[before + i] == 'x'),
                      "%s: %s: byte %zu is %c", rule->id, text, i, found[before + i]);
        }
    }
}

static void run_example(const bp_rule *rule, bool is_match, const char *text) {
    char plain[1024], expected[1024];
    bp_buffer json, expected_json;
    cr_assert(strlen(text) < sizeof plain);
    cr_expect(is_match == (strstr(text, "«") != NULL), "%s: %s", rule->id, text);
    if (rule->is_of_traffic) {
        run_message(rule, text);
        *(is_match ? &match_count : &not_count) += 1;
        return;
    }
    redacted_example(text, plain, expected);
    check(rule, BP_REDACT_TEXT, plain, expected);
    bp_buffer_init(&json, 1 << 16);
    bp_buffer_init(&expected_json, 1 << 16);
    for (int is_hard = 0; is_hard < 2; is_hard++) {
        append_json(&json, plain, is_hard);
        append_json(&expected_json, expected, is_hard);
        check(rule, BP_REDACT_JSON, json.data, expected_json.data);
    }
    bp_buffer_release(&json);
    bp_buffer_release(&expected_json);
    *(is_match ? &match_count : &not_count) += 1;
}

/* Command lines, as a line of text and as an array of JSON. */
static const char *const command_lines[] = {
    "curl --proxy-user bob:«S3cr3tPw9» http://h/",
    "curl --user bob:«S3cr3tPw9» http://h/",
    "curl --user=u:«S3cr3tPw9» http://h/",
    "curl -ubob:«S3cr3tPw9» http://h/",
    "curl -u bob:«S3cr3tPw9» http://h/",
    "tool --pass «S3cr3tPw9» run",
    "tool --pass=«S3cr3tPw9» run",
    "tool --pw «S3cr3tPw9»",
    "tool --basic-auth u:«S3cr3tPw9»",
    "tool --auth «S3cr3tPw9» x",
    "tool --auth bob:«S3cr3tPw9» x",
    "tool --key «S3cr3tPw9» x",
    "tool --key=«S3cr3tPw9» x",
    "tool --password «S3cr3tPw9» x",
    "mysql -u root -p«S3cr3tPw9» shop",
    "sshpass -p «S3cr3tPw9» ssh -p 22 h",
    "sshpass -p«S3cr3tPw9» ssh h",
    "docker login -u bob -p «S3cr3tPw9» h",
    "openssl rsa -passin pass:«S3cr3tPw9» -in k.pem",
    "redis-cli -h db -a «S3cr3tPw9» ping",
    "redis-server --requirepass «S3cr3tPw9»",
    "ldapsearch -x -D cn=bob -w «S3cr3tPw9» -b dc=x",
    "smbclient -U bob%«S3cr3tPw9» //h/s",
    "keytool -storepass «S3cr3tPw9» -list",
    "ffmpeg -i a.mkv -pass 1 -b 2M",
    "sshpass -e ssh -p 22 host",
    "mysql -h db -P 3306 -p shop",
    "docker run -u 1000:1000 -p 80:80 image",
    "tool --key name --auth none --user bob --pass-through yes",
    "ssh -p 22 -u -w 3 -a host",
    "tool --auth oauth2 --key /etc/Key1.pem --passes 4",
    "date -u +%F",
};

Test(redact_rules, find_secrets_in_command_lines) {
    static const bp_rule rule = {.id = "command line"};
    for (size_t i = 0; i < sizeof command_lines / sizeof command_lines[0]; i++) {
        char texts[2][512], arrays[2][1024];
        redacted_example(command_lines[i], texts[0], texts[1]);
        check(&rule, BP_REDACT_TEXT, texts[0], texts[1]);
        for (int j = 0; j < 2; j++) {
            char *out = arrays[j];
            out += snprintf(out, sizeof arrays[j], "{\"command_line\":[\"");
            for (const char *at = texts[j]; *at != '\0'; at++) {
                out += *at == ' ' ? snprintf(out, 4, "\",\"") : snprintf(out, 2, "%c", *at);
            }
            (void)snprintf(out, 32, "\"],\"cwd\":\"/x\"}\n");
        }
        check(&rule, BP_REDACT_JSON, arrays[0], arrays[1]);
    }
}

Test(redact_rules, replace_their_examples_and_nothing_else) {
    (void)redacted_each_example(run_example);
    cr_expect(match_count >= 120 && not_count >= 90, "%zu, %zu", match_count, not_count);
}
