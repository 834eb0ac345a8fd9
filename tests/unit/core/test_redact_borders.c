/*
 * Secrets at the borders of what is searched at once: pieces of a long line or document, and lines
 * that were recorded in several records.
 */
#include <bugpack/log.h>

#include "recorder/line_splitter.h"
#include "redact/tag.h"
#include "unit/redacted.h"
#include "unit/unit.h"

TestSuite(redact_borders, .init = redacted_setup, .fini = redacted_teardown, .timeout = 600);

enum { piece_max = 256 * 1024, block = 64 * 1024 };

/* Not every place, which would take half a minute; a prime, so that secrets of any length are cut
 * anywhere. */
enum { stride = 7 };

/* What is around a secret. */
static const struct {
    const char *name, *begin, *filler, *end;
    bp_redact_form form;
} texts[] = {
    {"a line", "", "words in a row ", "\nnext\n", BP_REDACT_TEXT},
    {"a line without blanks", "", "/x/", "\n", BP_REDACT_TEXT},
    {"a string", "{\"m\":\"", "words in a row ", "\",\"n\":1}", BP_REDACT_JSON},
    {"a line of JSON", "{\"m\":\"", "words, more ", "\",\"n\":1}\n", BP_REDACT_JSON_LINES},
    {"a document", "{\"m\":[\"", "\",\n  \"words\", \"", "\"],\"n\":1}\n", BP_REDACT_JSON},
    {"a document in one line", "{\"m\":[\"", "\",\"words\",\"", "\"],\"n\":1}\n", BP_REDACT_JSON},
};

static void append_quoted(bp_buffer *to, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        if (byte < 0x20) {
            (void)bp_buffer_printf(to, "\\u%04x", byte);
        } else {
            (void)bp_buffer_printf(to, byte == '"' || byte == '\\' ? "\\%c" : "%c", byte);
        }
    }
}

/* A text with `what` at `at`, in the middle of fillers, each of which is whole. */
static void make_text(size_t kind, size_t at, const char *what, bp_buffer *to) {
    const char *filler = texts[kind].filler;
    size_t length = strlen(filler), begin = strlen(texts[kind].begin);
    bp_buffer_init(to, 4 << 20);
    (void)bp_buffer_append_text(to, texts[kind].begin);
    char *room = bp_buffer_reserve(to, at);
    size_t count = (at - begin) / length * length;
    for (size_t i = 0; i < count; i += length) {
        memcpy(room + i, filler, length);
    }
    memset(room + count, '.', at - begin - count);
    bp_buffer_commit(to, at - begin);
    (void)bp_buffer_append_char(to, ' ');
    if (texts[kind].form == BP_REDACT_TEXT) {
        (void)bp_buffer_append_text(to, what);
    } else {
        append_quoted(to, what);
    }
    (void)bp_buffer_append_char(to, ' ');
    for (size_t i = 0; i < 20000; i += length) {
        (void)bp_buffer_append_text(to, filler);
    }
    (void)bp_buffer_append_text(to, texts[kind].end);
}

/* What is left of a text whose secret is at `at`, from there on. */
static const char *run_at(bool is_off, size_t kind, size_t at, const char *what, bp_buffer *out) {
    bp_buffer text;
    make_text(kind, at, what, &text);
    redacted(redactors[is_off], texts[kind].form, text.data, text.size, 50000, out);
    bool is_kept = memcmp(out->data, text.data, at) == 0;
    redacted_without_tags(out->data + at);
    bp_buffer_release(&text);
    return is_kept ? out->data + at : "(what is before it was changed)";
}

static size_t failure_count;

/* Whether the same is left as far from a border. */
static void check_at(const char *name, bool is_off, size_t kind, size_t at, const char *what,
                     const char *expected) {
    bp_buffer out;
    const char *left = run_at(is_off, kind, at, what, &out);
    if (strcmp(left, expected) != 0 && failure_count++ < 20) {
        cr_expect(false, "%s, %s, at %zu: %s\n  became %.200s\n  not %.200s", name,
                  texts[kind].name, at, what, left, expected);
    }
    bp_buffer_release(&out);
}

/* The forms whose key is further from their secret than others'. */
static const char *const secrets[] = {
    "password=«S3cr3tPw9»",
    "curl -H \"Authorization: Bearer «abcdef0123.x-y~zABCDEF»\" http://h/",
    "{\"user\":\"bob\",\"password\":\"«hunter 2»\"}",
    "mysql -h database.example.org -P 3306 --protocol=tcp -u root -p«S3cr3tPw9» shop",
    "«eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U»",
    "https://bob:«S3cr3tPw9»@example.org/",
    "\033[36mpassword\033[0m=\033[33m«S3cr3tPw9»\033[0m",
};

Test(redact_borders, leave_nothing_of_a_secret_at_any_place) {
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        char plain[512], expected[512];
        redacted_example(secrets[i], plain, expected);
        for (size_t kind = 0; kind < sizeof texts / sizeof texts[0]; kind++) {
            CLEANUP(bp_buffer_release) bp_buffer far;
            const char *left = run_at(false, kind, 1000, plain, &far);
            cr_expect(strstr(left, "«»") != NULL, "%s: %.200s", plain, left);
            /* Where pieces end: somewhere before what can be held. */
            for (size_t before = 0; before < 2600; before += 29 * stride) {
                check_at("a form", false, kind, piece_max + 100 - before, plain, left);
            }
            for (size_t before = 0; before < 180; before += 5 * stride) {
                check_at("a form", false, kind, piece_max - 8192 + 100 - before, plain, left);
                check_at("a form", false, kind, block + 100 - before, plain, left);
            }
        }
    }
    cr_expect(zero(sz, failure_count));
}

/* The blanks of the line that begins a key are places between words, too. */
Test(redact_borders, divide_no_line_that_begins_a_key) {
    const char key[] =
        "-----BEGIN RSA PRIVATE KEY----- MIIEpAIBAAKCAQEA -----END RSA PRIVATE KEY-----";
    CLEANUP(bp_buffer_release) bp_buffer far;
    const char *left = run_at(false, 3, 1000, key, &far);
    cr_expect(strncmp(left, " «» -----END", 14) == 0, "%.100s", left);
    for (size_t before = 1000; before < 1140; before += 3) {
        check_at("private-key", false, 3, piece_max - before, key, left);
    }
    cr_expect(zero(sz, failure_count));
}

static size_t checked_count;

static void check_example(const bp_rule *rule, bool is_match, const char *text) {
    char plain[1024], expected[1024];
    size_t *count = &checked_count;
    redacted_example(text, plain, expected);
    for (size_t kind = 0; is_match && !rule->is_of_traffic && kind < sizeof texts / sizeof texts[0];
         kind++) {
        bp_buffer far;
        const char *left = run_at(rule->is_off, kind, 1000, plain, &far);
        size_t before = (*count)++ * 131 % 2400;
        size_t border = *count % 2 == 0 ? piece_max + 60 : piece_max - 8192 + 2000;
        check_at(rule->id, rule->is_off, kind, border - before, plain, left);
        check_at(rule->id, rule->is_off, kind, block - *count % 1200, plain, left);
        bp_buffer_release(&far);
    }
}

Test(redact_borders, leave_as_much_of_each_example) {
    (void)redacted_each_example(check_example);
    cr_expect(gt(sz, checked_count, 700));
    cr_expect(zero(sz, failure_count));
}

/* Lines as a recorder has them: of three threads and channels, in parts. */
enum { stream_count = 3, text_max = 80 * 1024 };

struct stream {
    bp_line_splitter splitter;
    const char *members;
    bp_buffer *records;
    bp_redactor *at_call; /* NULL: redacted in the report */
};

static void take_part(void *context, const char *line, size_t line_bytes, unsigned part) {
    const struct stream *stream = context;
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES + 1];
    BUFFER(clean, 1 << 20);
    (void)snprintf(message, sizeof message, "%.*s", (int)line_bytes, line);
    if (stream->at_call != NULL) {
        uint64_t id = (uint64_t)(uintptr_t)stream;
        cr_assert(bp_redactor_message(stream->at_call, id, part, line, line_bytes, &clean) ==
                  BUGPACK_OK);
        (void)snprintf(message, sizeof message, "%s", bp_buffer_text(&clean));
    }
    (void)bp_buffer_printf(stream->records, "{\"level\":\"info\",%s,\"message\":\"",
                           stream->members);
    append_quoted(stream->records, message);
    (void)bp_buffer_append_text(stream->records, "\"");
    if ((part & BUGPACK_PART_CONTINUES) != 0) {
        (void)bp_buffer_append_text(stream->records, ",\"continues\":true");
    }
    if ((part & BUGPACK_PART_UNFINISHED) != 0) {
        (void)bp_buffer_append_text(stream->records, ",\"unfinished\":true");
    }
    (void)bp_buffer_append_text(stream->records, "}\n");
}

/* Records a line in each stream, in turns, `what` at `at` of the second one. */
static void record_lines(size_t at, const char *what, bool is_at_call, bp_buffer *records) {
    static const char *const members[] = {"\"channel\":\"stdout\",\"tid\":7,\"thread\":\"t\"",
                                          "\"channel\":\"stderr\",\"tid\":7,\"thread\":\"t\"",
                                          "\"channel\":\"stdout\",\"tid\":8,\"thread\":\"t\""};
    static struct stream streams[stream_count];
    static char line[text_max];
    size_t length = at + 5000, what_bytes = strlen(what);
    for (size_t i = 0; i < length; i++) {
        line[i] = "words in a row "[i % 15];
    }
    bp_buffer_init(records, 4 << 20);
    for (size_t i = 0; i < stream_count; i++) {
        streams[i].members = members[i];
        streams[i].records = records;
        streams[i].at_call = is_at_call ? redactors[0] : NULL;
        bp_line_splitter_init(&streams[i].splitter, take_part, &streams[i]);
    }
    for (size_t from = 0; from < length; from += 1000) {
        size_t count = length - from < 1000 ? length - from : 1000;
        for (size_t i = 0; i < stream_count; i++) {
            char piece[1000];
            memcpy(piece, line + from, count);
            for (size_t j = 0; i == 1 && j < count; j++) {
                size_t place = from + j - at;
                if (from + j >= at && place < what_bytes) {
                    piece[j] = what[place];
                }
            }
            bp_line_splitter_feed(&streams[i].splitter, piece, count);
        }
    }
    for (size_t i = 0; i < stream_count; i++) {
        bp_line_splitter_feed(&streams[i].splitter, "\n", 1);
    }
}

/* The messages of a stream without what is between them, and of the others. */
static void join(const char *records, const char *member, bp_buffer *to) {
    static const char key[] = "\"message\":\"";
    bp_buffer_init(to, 4 << 20);
    for (const char *line = records, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        const char *from = strstr(line, key);
        const char *last = from + sizeof key - 1;
        while (!(last[0] == '"' && last[-1] != '\\')) {
            last++;
        }
        if (memmem(line, (size_t)(from - line), member, strlen(member)) != NULL) {
            (void)bp_buffer_append(to, from + sizeof key - 1,
                                   (size_t)(last - from) - (sizeof key - 1));
        }
    }
}

static void check_parts(size_t i, size_t at, bool is_at_call) {
    char plain[512], expected[512], hidden[512] = "";
    bp_buffer records, out, left, other;
    redacted_example(secrets[i], plain, expected);
    const char *secret = strstr(secrets[i], "«") + 2;
    memcpy(hidden, secret, (size_t)(strstr(secrets[i], "»") - secret));
    (void)snprintf(expected, sizeof expected, " %s ", plain);
    record_lines(at, expected, is_at_call, &records);
    redacted(redactors[0], BP_REDACT_JSON_LINES, records.data, records.size, 50000, &out);
    join(out.data, "\"stderr\"", &left);
    join(out.data, "\"stdout\"", &other);
    size_t longest = 0;
    for (size_t from = 0; hidden[from] != '\0'; from++) {
        size_t length = 0;
        char part[512];
        do {
            longest = length > longest ? length : longest;
            length++;
            (void)snprintf(part, sizeof part, "%.*s", (int)length, hidden + from);
        } while (from + length <= strlen(hidden) && strstr(left.data, part) != NULL);
    }
    bool is_rest_there =
        left.size > at + 4000 && strstr(left.data + at + 1000, "row words") != NULL;
    if ((longest >= 6 || !is_rest_there || strstr(other.data, "REDACTED") != NULL) &&
        failure_count++ < 20) {
        cr_expect(false, "%s at %zu: %zu bytes of it are left, in %zu:\n%.300s", plain, at, longest,
                  left.size, left.data + at - 30);
    }
    bp_buffer_release(&records);
    bp_buffer_release(&out);
    bp_buffer_release(&left);
    bp_buffer_release(&other);
}

Test(redact_borders, leave_nothing_of_a_secret_without_an_end_in_the_records_that_continue_it) {
    static const char *const begins[] = {"-----BEGIN RSA PRIVATE KEY-----", "password=\\\""};
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        bp_buffer records, out;
        bp_buffer_init(&records, 4096);
        (void)bp_buffer_printf(&records,
                               "{\"level\":\"info\",\"tid\":7,\"message\":\"%sMIIEaa\","
                               "\"unfinished\":true}\n"
                               "{\"level\":\"info\",\"tid\":8,\"message\":\"of another\"}\n"
                               "{\"level\":\"info\",\"tid\":7,\"message\":\"MIIEbb\","
                               "\"continues\":true,\"unfinished\":true}\n"
                               "{\"level\":\"info\",\"tid\":7,\"message\":\"MIIEcc\","
                               "\"continues\":true}\n"
                               "{\"level\":\"info\",\"tid\":7,\"message\":\"the next\"}\n",
                               begins[i]);
        redacted(redactors[0], BP_REDACT_JSON_LINES, records.data, records.size, 50000, &out);
        cr_expect(strstr(bp_buffer_text(&out), "MIIE") == NULL, "%s", bp_buffer_text(&out));
        cr_expect(strstr(out.data, "of another") != NULL && strstr(out.data, "the next") != NULL);
        bp_buffer_release(&records);
        bp_buffer_release(&out);
    }
}

Test(redact_borders, leave_nothing_in_parts_of_a_line) {
    static const size_t borders[] = {4096, 8192, 16384, 65536};
    for (size_t i = 0; i < sizeof secrets / sizeof secrets[0]; i++) {
        for (size_t border = 0; border < 4; border++) {
            for (int offset = -80; offset <= 80; offset += (border == 0 ? 1 : 7) * stride) {
                check_parts(i, borders[border] + (size_t)offset, false);
            }
        }
        for (int offset = -80; offset <= 80; offset += 3 * stride) {
            check_parts(i, 4096 + (size_t)offset, true);
        }
    }
    cr_expect(zero(sz, failure_count));
}
