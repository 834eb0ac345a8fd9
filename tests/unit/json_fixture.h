/*
 * What the tests of the JSON builder share: a buffer and an error for each test, and the two ways
 * in which a document ends.
 */
#ifndef TESTS_UNIT_JSON_FIXTURE_H
#define TESTS_UNIT_JSON_FIXTURE_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

#include "json/json.h"

static bp_buffer out;
static bugpack_error error;

static inline void setup(void) {
    bp_buffer_init(&out, (size_t)64 << 20);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
}

static inline void teardown(void) {
    bp_buffer_release(&out);
}

/* Prints on one line, without the newline, and frees the document. */
static inline const char *line_of(bp_json *json) {
    cr_assert(eq(int, bp_json_print_line(json, &out, &error), BUGPACK_OK), "%s", error.message);
    bp_json_free(json);
    cr_assert(eq(chr, out.data[out.size - 1], '\n'));
    out.data[--out.size] = '\0';
    return out.data;
}

/* Prints, expects a failure that says `why`, and that nothing was written; frees the document. */
static inline void refuses(bp_json *json, bugpack_status status, const char *why) {
    (void)bp_buffer_append_text(&out, "before");
    cr_expect(eq(int, bp_json_print(json, &out, &error), status));
    cr_expect(strstr(error.message, why) != NULL, "'%s' is not in '%s'", why, error.message);
    cr_expect(eq(int, bp_json_print_line(json, &out, NULL), status));
    cr_expect(eq(str, (char *)bp_buffer_text(&out), "before"));
    bp_json_free(json);
}

#endif
