#include "json/member.h"

#include <string.h>

#include "json/scanner.h"

/* Most keys differ in their first letter. */
static bp_json_field *find_field(const char *key, size_t key_bytes, bp_json_field *fields,
                                 size_t count) {
    for (size_t i = 0; i < count; i++) {
        const char *wanted = fields[i].key;
        if (key_bytes > 1 && key[1] == wanted[1] && strncmp(wanted, key, key_bytes) == 0 &&
            wanted[key_bytes] == '\0') {
            return &fields[i];
        }
    }
    return NULL;
}

bugpack_status bp_json_find(const void *text, size_t byte_count, bp_json_field *fields,
                            size_t count, bugpack_error *error) {
    bp_json_scanner scanner;
    bp_json_token token = {.kind = BP_JSON_END}, root = token;
    bp_json_field *field = NULL; /* whose value comes next, or goes on */
    bugpack_status status;
    bp_json_scanner_init(&scanner, text, byte_count);
    scanner.key_max = BP_JSON_KEY_MAX;
    while ((status = bp_json_scanner_next(&scanner, &token, error)) == BUGPACK_OK &&
           token.kind != BP_JSON_FINISH) {
        root = root.text == NULL ? token : root;
        if (token.kind == BP_JSON_KEY && scanner.depth == 1) {
            field = find_field(token.text, token.byte_count, fields, count);
        } else if (field != NULL) {
            const char *value = field->value.text != NULL ? field->value.text : token.text;
            field->value = (bp_json_token){BP_JSON_SCALAR, value,
                                           (size_t)(token.text + token.byte_count - value)};
            field = scanner.depth > 1 ? field : NULL;
        }
    }
    bp_json_scanner_release(&scanner);
    return status == BUGPACK_OK && root.text[0] != '{'
               ? bp_json_fail_at(text, root.text, error, "expected an object")
               : status;
}

/* The end of the string whose opening quote is at `at`. */
static const char *end_of_string(const char *at, const char *end) {
    for (at++; (at = memchr(at, '"', (size_t)(end - at))) != NULL; at++) {
        const char *before = at;
        while (before[-1] == '\\') {
            before--;
        }
        if ((at - before) % 2 == 0) {
            return at + 1;
        }
    }
    return end;
}

/* The end of a value: a string, a number or word, or all that is between two brackets. */
static const char *end_of_value(const char *at, const char *end) {
    size_t depth = 0;
    do {
        if (*at == '"') {
            at = end_of_string(at, end);
        } else {
            depth += *at == '{' || *at == '[';
            depth -= depth > 0 && (*at == '}' || *at == ']');
            at++;
        }
    } while (at < end && (depth > 0 || (*at != ',' && *at != '}')));
    return at;
}

void bp_json_line_find(const char *line, size_t line_bytes, bp_json_field *fields, size_t count) {
    const char *at = line, *end = line + line_bytes;
    size_t found = 0;
    while (found < count && at < end && (at = memchr(at, '"', (size_t)(end - at))) != NULL) {
        const char *key = at, *key_end = end_of_string(at, end);
        for (at = key_end; at < end && (*at == ':' || *at == ' ' || *at == '\t'); at++) {}
        if (at == end) {
            return;
        }
        const char *value = at;
        at = end_of_value(at, end);
        bp_json_field *field = find_field(key, (size_t)(key_end - key), fields, count);
        if (field != NULL) {
            found += field->value.byte_count == 0; /* not a key that is there twice */
            field->value = (bp_json_token){BP_JSON_SCALAR, value, (size_t)(at - value)};
        }
    }
}
