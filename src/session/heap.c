/*
 * The public calls that look at a heap: this process's, and the allocation counters of another.
 */
#include <bugpack/heap.h>
#include <bugpack/heap_state.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/struct_size.h"
#include "model/heap_state.h"
#include "platform/allocator.h"
#include "probe/thread_heap.h"
#include "session/session.h"

static const size_t counters_limit_bytes = (size_t)256 << 20;
static const size_t state_limit_bytes = (size_t)64 << 10;

static bugpack_status take_options(const bugpack_thread_heap_options *given,
                                   bugpack_thread_heap_options *options, bugpack_error *error) {
    static const bp_field fields[] = {
        BP_FIELD(bugpack_thread_heap_options, snapshot_count, 1, BP_FIELD_NEVER_OFF),
        BP_FIELD(bugpack_thread_heap_options, interval_ms, 100, 0)};
    bugpack_status status =
        given == NULL ? BUGPACK_OK
                      : bp_struct_read(&bp_of_bugpack_thread_heap_options, options, given, error);
    if (status == BUGPACK_OK) {
        status = bp_struct_fill(options, fields, sizeof fields / sizeof fields[0], error);
    }
    if (status == BUGPACK_OK && options->interval_ms > BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "an interval of %u ms is over %u ms",
                       (unsigned)options->interval_ms, BUGPACK_THREAD_HEAP_INTERVAL_MAX_MS);
    }
    if (options->stop_fd == 0) {
        options->stop_fd = -1;
    }
    return status;
}

static void fill_result(const bp_thread_heap_reading *reading, bugpack_thread_heap_result *result) {
    bugpack_thread_heap_result full = {
        .is_measured = reading->failure == BP_HEAP_FAILURE_NONE,
        .is_absence = bp_heap_failure_is_absence(reading->failure, reading->system_errno),
        .unread_count = (uint32_t)bp_thread_heap_unread_count(reading)};
    for (size_t i = 0; i < reading->snapshot_count; i++) {
        full.stop_count += reading->snapshots[i].stopped_count;
    }
    (void)snprintf(full.failure, sizeof full.failure, "%s", bp_heap_failure_name(reading->failure));
    memcpy(full.reason, reading->reason, sizeof full.reason);
    bp_struct_write(&bp_of_bugpack_thread_heap_result, result, &full);
}

static bugpack_status probe(pid_t pid, const bugpack_thread_heap_options *options,
                            bp_thread_heap_reading *ret_reading, bugpack_error *error) {
    bp_heap_prober_options prober_options = BP_HEAP_PROBER_OPTIONS_INIT;
    bp_heap_prober *prober = NULL;
    bp_heap_plan plan = {options->snapshot_count, options->interval_ms, options->stop_fd};
    prober_options.allow_stop = !options->without_stop;
    prober_options.calibrator_path = options->calibrator_path;
    prober_options.use_cache = !options->without_cache;
    bugpack_status status = bp_heap_prober_new(&prober_options, &prober, error);
    if (status == BUGPACK_OK) {
        status = bp_heap_probe(prober, pid, &plan, ret_reading, error);
        bp_heap_prober_free(prober);
    }
    if (status == BUGPACK_OK && ret_reading->failure == BP_HEAP_FAILURE_PID_MISSING) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "%s", ret_reading->reason);
        bp_thread_heap_reading_release(ret_reading);
    }
    return status;
}

static bugpack_status read_counters(pid_t pid, const bugpack_thread_heap_options *given,
                                    char **ret_text, size_t *ret_bytes,
                                    bugpack_thread_heap_result *result, bugpack_error *error) {
    bugpack_thread_heap_options options = BUGPACK_THREAD_HEAP_OPTIONS_INIT;
    bp_thread_heap_reading reading = {0};
    bp_buffer text;
    bugpack_status status = take_options(given, &options, error);
    if (status == BUGPACK_OK && result != NULL) {
        status = bp_struct_check(&bp_of_bugpack_thread_heap_result, result, error);
    }
    if (status == BUGPACK_OK) {
        status = probe(pid, &options, &reading, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer_init(&text, counters_limit_bytes);
    status = options.as_text ? bp_thread_heap_print_text(&reading, &text, error)
                             : bp_thread_heap_print(&reading, &text, error);
    if (status == BUGPACK_OK) {
        if (result != NULL) {
            fill_result(&reading, result);
        }
        *ret_text = text.data;
        if (ret_bytes != NULL) {
            *ret_bytes = text.size;
        }
    } else {
        bp_buffer_release(&text);
    }
    bp_thread_heap_reading_release(&reading);
    return status;
}

bugpack_status bugpack_thread_heap_read(pid_t pid, const bugpack_thread_heap_options *options,
                                        char **ret_text, size_t *ret_bytes,
                                        bugpack_thread_heap_result *result, bugpack_error *error) {
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    bugpack_status status = read_counters(pid, options, ret_text, ret_bytes, result, error);
    bp_thread_hold_end(&hold);
    return status;
}

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
