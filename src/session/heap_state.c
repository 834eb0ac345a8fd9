#include <bugpack/heap_state.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/heap_state.h"
#include "platform/allocator.h"
#include "report/call.h"
#include "session/session.h"

static const char artefact_name[] = "heap-state.json";

static const size_t limit_bytes = (size_t)64 << 10;

/* Up to this field the struct has been there from the first version on. */
static const size_t first_version_bytes =
    offsetof(bugpack_heap_state, narenas) + sizeof((bugpack_heap_state *)NULL)->narenas;

/* What the provider and bugpack_heap_state_enable share; freed after the provider's last call. */
typedef struct heap_switch {
    atomic_bool is_off;
} heap_switch;

/* Neither is a failure: the report is as complete as it can be. */
static void leave_out(bugpack_writer *writer, bp_artefact_status status, const char *reason) {
    writer->line.status = status;
    (void)snprintf(writer->line.reason, sizeof writer->line.reason, "%s", reason);
}

/*
 * Under a time limit like a host's provider: where a thread of the host hangs inside the allocator
 * or the dynamic linker, this hangs too, and costs the report nothing but this artefact.
 */
static int provide_heap_state(bugpack_writer *writer, void *context) {
    const heap_switch *provider_switch = context;
    if (atomic_load_explicit(&provider_switch->is_off, memory_order_relaxed)) {
        leave_out(writer, BP_ARTEFACT_DISABLED, "the host turned it off");
        return 0;
    }
    bp_heap_reading reading;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_allocator_read(&reading, &error);
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        leave_out(writer, BP_ARTEFACT_OMITTED, error.message);
        return 0;
    }
    if (status == BUGPACK_OK) {
        status = bp_heap_state_print(&reading.state, &writer->content, &error);
    }
    if (status != BUGPACK_OK) {
        bugpack_fail(writer, "%s", error.message);
        return -1;
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "%s", reading.unused);
    if (reading.missing[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", reading.missing);
    }
    return 0;
}

bugpack_status bp_session_provide_heap_state(bugpack *session, bugpack_error *error) {
    if (session->options.target_pid != 0 || session->options.without_process) {
        return BUGPACK_OK; /* our allocator has nothing to say of anything else */
    }
    heap_switch *provider_switch = calloc(1, sizeof *provider_switch);
    if (provider_switch == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    atomic_init(&provider_switch->is_off, false);
    bp_provider_spec spec = {.name = artefact_name,
                             .form = BP_CONTENT_BYTES,
                             .provide = provide_heap_state,
                             .context = provider_switch,
                             .release = free,
                             .limit_bytes = limit_bytes,
                             .timeout_ms = session->options.provider_timeout_ms};
    return bp_session_register(session, &spec, error);
}

bugpack_status bugpack_heap_state_enable(bugpack *session, bool enabled) {
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return status;
    }
    (void)pthread_mutex_lock(&session->providers_mutex);
    for (size_t i = 0; i < session->provider_count; i++) {
        const bp_provider_spec *spec = bp_provider_spec_of(session->providers[i]);
        if (spec->provide == provide_heap_state) {
            heap_switch *provider_switch = spec->context;
            atomic_store_explicit(&provider_switch->is_off, !enabled, memory_order_relaxed);
        }
    }
    (void)pthread_mutex_unlock(&session->providers_mutex);
    bp_session_leave(&entry);
    return BUGPACK_OK;
}

static bugpack_status check_state(const bugpack_heap_state *state, bugpack_error *error) {
    if (state == NULL || state->struct_size < first_version_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "a heap state begins as BUGPACK_HEAP_STATE_INIT");
    }
    return BUGPACK_OK;
}

bugpack_status bugpack_heap_state_read(bugpack_heap_state *ret_state, bugpack_error *error) {
    bugpack_status status = check_state(ret_state, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_heap_reading reading;
    int cancel = bp_thread_hold_cancel();
    status = bp_allocator_read(&reading, error);
    bp_thread_allow_cancel(cancel);
    if (status == BUGPACK_OK) {
        size_t known_bytes = ret_state->struct_size;
        memcpy(ret_state, &reading.state,
               known_bytes < sizeof reading.state ? known_bytes : sizeof reading.state);
        ret_state->struct_size = known_bytes;
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
    bugpack_status status = check_state(state, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer text;
    bp_buffer_init(&text, limit_bytes);
    (void)bp_heap_state_text(state, &text);
    return hand_over(&text, ret_text, error);
}

bugpack_status bugpack_heap_state_diff(const bugpack_heap_state *before,
                                       const bugpack_heap_state *after, char **ret_text,
                                       bugpack_error *error) {
    bugpack_status status = check_state(before, error);
    if (status == BUGPACK_OK) {
        status = check_state(after, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_buffer text;
    bp_buffer_init(&text, limit_bytes);
    (void)bp_heap_state_diff(before, after, &text);
    return hand_over(&text, ret_text, error);
}
