/*
 * For tests of what the model prints: a buffer to print into, and a look at the whole text.
 */
#ifndef TESTS_UNIT_MODEL_FIXTURE_H
#define TESTS_UNIT_MODEL_FIXTURE_H

#include "support/json_line.h"
#include "support/model_samples.h"

#include "unit/unit.h"

static bp_buffer out;
static bugpack_error error;

static inline void begin_printing(void) {
    bp_buffer_init(&out, 1 << 20);
    error = (bugpack_error)BUGPACK_ERROR_INIT;
}

static inline void end_printing(void) {
    bp_buffer_release(&out);
}

/* Compares without the layout, which tests of bp_json look at. */
#define EXPECT_PRINTED(status, text)                                                               \
    cr_assert(eq(int, status, BUGPACK_OK), "%s", error.message);                                   \
    json_line_fold(&out, 0);                                                                       \
    cr_expect(eq(str, out.data, text))

#endif
