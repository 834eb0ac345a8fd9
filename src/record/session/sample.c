/*
 * The public calls that measure without a session or a report: a process, and our own heap.
 */
#include <stdlib.h>

#include <bugpack/heap_state.h>
#include <bugpack/sample.h>

#include "base/status.h"
#include "base/struct_size.h"
#include "model/heap_state.h"
#include "model/metrics.h"
#include "platform/allocator.h"
#include "session/session.h"

static const size_t json_limit_bytes = (size_t)256 << 20;

/* Both samples and the wait between them. */
static bugpack_status sample_window(bp_sampler *sampler, uint32_t window_ms,
                                    bp_metrics *ret_metrics, bugpack_error *error) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    bugpack_status status = bp_sampler_begin(sampler, error);
    if (status == BUGPACK_OK) {
        bp_clock_sleep_until(began_ns + window_ms * BP_NS_PER_MS);
        status = bp_sampler_end(sampler, ret_metrics, error);
    }
    return status;
}

static bugpack_status sample(pid_t pid, uint32_t window_ms, char **ret_json, size_t *ret_bytes,
                             bugpack_error *error) {
    if (window_ms > BUGPACK_SAMPLE_WINDOW_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a sample window of %u ms is over %u ms",
                       (unsigned)window_ms, BUGPACK_SAMPLE_WINDOW_MAX_MS);
    }
    bp_buffer json;
    bp_buffer_init(&json, json_limit_bytes);
    bp_sampler *sampler = NULL;
    bp_metrics metrics;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_sampler_open(pid, &sampler, &detail);
    if (status == BUGPACK_OK) {
        status = sample_window(sampler, window_ms, &metrics, &detail);
    }
    if (status == BUGPACK_OK) {
        status = bp_metrics_print(&metrics, bp_machine_platform(), &json, &detail);
        bp_metrics_release(&metrics);
    } else if (status == BUGPACK_ERR_UNSUPPORTED) {
        /* That there are no metrics here is an answer too. */
        bugpack_error reason = detail;
        status =
            bp_metrics_print_unavailable(bp_machine_platform(), reason.message, &json, &detail);
    }
    bp_sampler_close(sampler);
    if (status != BUGPACK_OK) {
        bp_buffer_release(&json);
        if (error != NULL) {
            *error = detail;
        }
        return status;
    }
    *ret_json = json.data;
    if (ret_bytes != NULL) {
        *ret_bytes = json.size;
    }
    return BUGPACK_OK;
}

bugpack_status bugpack_sample(pid_t pid, uint32_t window_ms, char **ret_json, size_t *ret_bytes,
                              bugpack_error *error) {
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    bugpack_status status = sample(pid, window_ms, ret_json, ret_bytes, error);
    bp_thread_hold_end(&hold);
    return status;
}

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
