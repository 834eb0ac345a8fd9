#include "platform/stream.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

static void write_nothing(void *context, const char *bytes, size_t byte_count) {
    (void)context;
    (void)bytes;
    (void)byte_count;
}

static void close_nothing(void *context) {
    (void)context;
}

Test(stub_stream, says_that_there_are_none_and_leaves_the_output_alone) {
    const bp_stream_calls calls = {.write = write_nothing, .close = close_nothing};
    FILE *stream = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(
        eq(int, (int)bp_stream_open(&calls, NULL, &stream, &error), (int)BUGPACK_ERR_UNSUPPORTED));
    cr_assert(eq(int, (int)error.status, (int)BUGPACK_ERR_UNSUPPORTED));
    cr_assert(eq(ptr, stream, NULL));
}
