/*
 * Shared by the tests of the JSON builder: a buffer, an error and a document for each test, and the
 * two ways in which a document ends.
 */
#ifndef TESTS_UNIT_JSON_FIXTURE_H
#define TESTS_UNIT_JSON_FIXTURE_H

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <string.h>

#include "support/json_line.h"
#include "json/json.h"

static bp_buffer out;
static bp_json json;
static bugpack_error error;

static inline void setup(void) {
    bp_buffer_init(&out, (size_t)64 << 20);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
}

static inline void teardown(void) {
    bp_buffer_release(&out);
}

/* Finishes the document and returns all of the buffer on one line, without the newline. */
static inline const char *line_of(void) {
    size_t start = json.start;
    cr_assert(eq(int, bp_json_finish(&json, &error), BUGPACK_OK), "%s", error.message);
    cr_assert(eq(chr, out.data[out.size - 1], '\n'));
    json_line_fold(&out, start);
    return out.data;
}

/* Begins a document after a text, which a failure must leave alone. */
static inline void begin_after_text(void) {
    bp_buffer_clear(&out);
    (void)bp_buffer_append_text(&out, "before");
    bp_json_begin(&json, &out);
}

/* Finishes it, and expects a failure that says `why` and that nothing was added. */
static inline void refuses(bugpack_status status, const char *why) {
    cr_expect(eq(int, bp_json_finish(&json, &error), status));
    cr_expect(strstr(error.message, why) != NULL, "'%s' is not in '%s'", why, error.message);
    cr_expect(eq(str, (char *)bp_buffer_text(&out), "before"));
}

#endif
