#include <stdio.h>

#include "base/status.h"
#include "model/heap_state.h"
#include "platform/allocator.h"
#include "sources/source.h"

static void drop_subject(void *subject) {
    bp_subject_drop(subject);
}

/* No failure: the report is as complete as it can be. */
static int leave_out(bugpack_writer *writer, bp_artefact_status status, const char *reason) {
    writer->line.status = status;
    (void)snprintf(writer->line.reason, sizeof writer->line.reason, "%s", reason);
    return 0;
}

/*
 * Under a time limit like a host's provider: where a thread of the host hangs inside the allocator
 * or the dynamic linker, this hangs too, and only this entry is lost.
 */
static int provide(bugpack_writer *writer, void *subject) {
    if (!bp_subject_wants_heap_state(subject)) {
        return leave_out(writer, BP_ARTEFACT_DISABLED, "the host turned it off");
    }
    bp_heap_reading reading;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_allocator_read(&reading, &error);
    if (status == BUGPACK_ERR_UNSUPPORTED) {
        return leave_out(writer, BP_ARTEFACT_OMITTED, error.message);
    }
    if (status == BUGPACK_OK) {
        status = bp_heap_state_print(&reading.state, &writer->content, &error);
    }
    if (status != BUGPACK_OK) {
        return bugpack_fail(writer, "%s", error.message);
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "%s", reading.unused);
    if (reading.missing[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", reading.missing);
    }
    return 0;
}

bugpack_status bp_source_heap_state(const bp_report_context *context, bugpack_error *error) {
    if (bp_subject_target(context->subject)->pid != 0 || context->settings->without_process) {
        return BUGPACK_OK; /* our allocator says nothing about another process */
    }
    const bp_provider_spec spec = {.name = "heap-state.json",
                                   .form = BP_CONTENT_BYTES,
                                   .provide = provide,
                                   .context = bp_subject_retain(context->subject),
                                   .release = drop_subject,
                                   .limit_bytes = (size_t)64 << 10,
                                   .timeout_ms = context->settings->provider_timeout_ms};
    return bp_source_add(context, &spec, error);
}
