#include "unit/redacted.h"

#include <ctype.h>
#include <stdio.h>

#include "redact/tag.h"
#include "unit/unit.h"

bp_rule_set *sets[2];
bp_redactor *redactors[2];

bp_rule_set *redacted_set(const char *rules) {
    char *const texts[] = {(char *)(uintptr_t)rules};
    bp_rule_set *set = NULL;
    cr_assert(bp_rule_set_of_texts("rules", texts, rules != NULL, &set, &failure) == BUGPACK_OK,
              "%s", failure.message);
    return set;
}

size_t redacted_each_example(redacted_example_taker *take) {
    CLEANUP(bp_rule_list_release) bp_rule_list list = {.rules = NULL};
    const char *text = (const char *)bp_builtin_rules;
    const bp_rule *rule = NULL;
    size_t count = 0;
    char line[4096];
    cr_assert(eq(int, bp_rule_list_add_builtin(&list, &failure), BUGPACK_OK), "%s",
              failure.message);
    for (size_t at = 0, length; at < bp_builtin_rules_bytes; at += length + 1) {
        length = strcspn(text + at, "\n");
        cr_assert(lt(sz, length, sizeof line));
        (void)snprintf(line, sizeof line, "%.*s", (int)length, text + at);
        bool is_match = strncmp(line, "match = ", 8) == 0;
        if (line[0] == '[') {
            line[length - 1] = '\0';
            for (rule = list.rules; strcmp(rule->id, line + 1) != 0; rule++) {
                cr_assert(lt(ptr, (void *)(uintptr_t)rule, list.rules + list.count));
            }
        } else if (is_match || strncmp(line, "not = ", 6) == 0) {
            take(rule, is_match, strstr(line, " = ") + 3);
            count += is_match;
        }
    }
    return count;
}

void redacted_setup(void) {
    for (int i = 0; i < 2; i++) {
        sets[i] = redacted_set(i == 0 ? NULL : "use = email home");
        redactors[i] = bp_redactor_new(sets[i]);
        cr_assert(redactors[i] != NULL);
    }
}

void redacted_teardown(void) {
    for (int i = 0; i < 2; i++) {
        bp_redactor_free(redactors[i]);
        bp_rule_set_drop(sets[i]);
    }
}

static bugpack_status append(void *context, const void *bytes, size_t byte_count) {
    return bp_buffer_append(context, bytes, byte_count);
}

void redacted(bp_redactor *redactor, bp_redact_form form, const char *text, size_t byte_count,
              size_t piece_bytes, bp_buffer *out) {
    bp_buffer_init(out, (size_t)1 << 30);
    bp_redactor_begin(redactor, form);
    for (size_t at = 0; at < byte_count; at += piece_bytes) {
        size_t left = byte_count - at;
        cr_assert(bp_redactor_write(redactor, text + at, left < piece_bytes ? left : piece_bytes,
                                    append, out) == BUGPACK_OK);
    }
    cr_assert(bp_redactor_write(redactor, NULL, 0, append, out) == BUGPACK_OK);
}

void redacted_without_tags(char *text) {
    static const char prefix[] = BP_TAG_PREFIX;
    char *out = text, *tag;
    while ((tag = strstr(text, prefix)) != NULL) {
        memmove(out, text, (size_t)(tag - text));
        out += tag - text;
        memcpy(out, "«»", strlen("«»"));
        out += strlen("«»");
        /* REDACTED-<rule>-<12 hex digits>; a rule's id may have a '-' and no 12 hex digits. */
        for (text = tag + sizeof prefix;
             !(text[0] == '-' && strspn(text + 1, "0123456789abcdef") >= 12);) {
            bool is_of_tag = isalnum((unsigned char)*text) || *text == '-';
            cr_assert(is_of_tag, "%s", tag);
            text++;
        }
        text += 13;
    }
    memmove(out, text, strlen(text) + 1);
}

void redacted_example(const char *text, char *plain, char *expected) {
    static const char open[] = "«", close[] = "»";
    bool is_inside = false;
    for (; *text != '\0'; text++) {
        if (strncmp(text, open, 2) == 0 || strncmp(text, close, 2) == 0) {
            is_inside = *(const unsigned char *)(text + 1) == 0xAB;
            memcpy(expected, text, 2);
            expected += 2;
            text++;
        } else {
            char byte = *text;
            if (text[0] == '\\' && text[1] == 'n' && strstr(text, "-----END") != NULL) {
                byte = '\n'; /* a block has lines */
                text++;
            }
            *plain++ = byte;
            if (!is_inside) {
                *expected++ = byte;
            }
        }
    }
    *plain = *expected = '\0';
}
