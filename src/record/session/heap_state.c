#include <stdlib.h>

#include <bugpack/heap_state.h>

#include "base/buffer.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "model/heap_state.h"
#include "platform/allocator.h"
#include "platform/thread.h"

static const size_t state_limit_bytes = (size_t)64 << 10;

bugpack_status bugpack_heap_state_read(bugpack_heap_state *ret_state, bugpack_error *error) {
    bugpack_status status = bp_struct_check(&bp_of_bugpack_heap_state, ret_state, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_heap_reading reading;
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    status = bp_allocator_read(&reading, error);
    bp_thread_hold_end(&hold);
    if (status == BUGPACK_OK) {
        bp_struct_write(&bp_of_bugpack_heap_state, ret_state, &reading.state);
    }
    return status;
}

/* Gives the caller what was printed; an empty text is a text too. */
static bugpack_status hand_over(bp_buffer *text, char **ret_text, bugpack_error *error) {
    if (text->status == BUGPACK_OK && text->data == NULL) {
        text->data = calloc(1, 1);
    }
    if (text->status != BUGPACK_OK || text->data == NULL) {
        bp_buffer_release(text);
        return bp_fail_memory(error, "print the state of the heap");
    }
    *ret_text = text->data;
    return BUGPACK_OK;
}

bugpack_status bugpack_heap_state_text(const bugpack_heap_state *state, char **ret_text,
                                       bugpack_error *error) {
    bugpack_heap_state known = BUGPACK_HEAP_STATE_INIT;
    bugpack_status status = bp_struct_read(&bp_of_bugpack_heap_state, &known, state, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer text;
    bp_buffer_init(&text, state_limit_bytes);
    (void)bp_heap_state_text(&known, &text);
    return hand_over(&text, ret_text, error);
}

bugpack_status bugpack_heap_state_diff(const bugpack_heap_state *before,
                                       const bugpack_heap_state *after, char **ret_text,
                                       bugpack_error *error) {
    bugpack_heap_state known[2] = {BUGPACK_HEAP_STATE_INIT, BUGPACK_HEAP_STATE_INIT};
    bugpack_status status = bp_struct_read(&bp_of_bugpack_heap_state, &known[0], before, error);
    if (status == BUGPACK_OK) {
        status = bp_struct_read(&bp_of_bugpack_heap_state, &known[1], after, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer text;
    bp_buffer_init(&text, state_limit_bytes);
    (void)bp_heap_state_diff(&known[0], &known[1], &text);
    return hand_over(&text, ret_text, error);
}
