#include "probe/system.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "sources/source.h"

/* The share of the provider's time within which a package is searched for. */
static const uint64_t reading_share_percent = 50;

/* What the provider needs, as it outlives the session when it hangs. */
struct system_source {
    bp_subject *subject;
    uint32_t timeout_ms;
    bool with_process, with_hostname, asks_rpm;
    _Atomic(bp_package_memory *) memory; /* NULL: nothing, or a call has it */
};

static void free_memory(bp_package_memory *memory) {
    if (memory != NULL) {
        free(memory->path);
        free(memory);
    }
}

static bugpack_status read_system(struct system_source *source, bp_package_memory *memory,
                                  bp_system *ret_system, bugpack_error *error) {
    uint64_t time_ns = source->timeout_ms * BP_NS_PER_MS * reading_share_percent / 100;
    const bp_system_plan plan = {.with_process = source->with_process,
                                 .pid = bp_subject_target(source->subject)->pid,
                                 .with_hostname = source->with_hostname,
                                 .asks_rpm = source->asks_rpm,
                                 .deadline_ns = bp_clock_monotonic_ns() + time_ns,
                                 .memory = memory};
    bugpack_error ended = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_system_read(&plan, ret_system, error);
    if (status == BUGPACK_OK && plan.with_process &&
        bp_subject_check(source->subject, &ended) == BUGPACK_ERR_NO_PROCESS) {
        bp_system_forget_process(ret_system); /* it may be of the next process with this id */
    }
    return status;
}

/* Under a time limit like a host's provider: a file may be on a disk that does not answer. */
static int provide(bugpack_writer *writer, void *context) {
    struct system_source *source = context;
    bp_system system;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_package_memory *memory = atomic_exchange(&source->memory, NULL);
    memory = memory != NULL ? memory : calloc(1, sizeof *memory);
    bugpack_status status = memory == NULL ? bp_fail_memory(&error, "describe the system")
                                           : read_system(source, memory, &system, &error);
    if (status == BUGPACK_OK) {
        if (system.unread_count > 0) {
            bp_writer_truncate(writer, bp_errno_is_trouble(system.unread_errno),
                               "%zu files could not be read: %s", system.unread_count,
                               strerror(system.unread_errno));
        }
        status = bp_system_print(&system, &writer->content, &error);
        bp_system_release(&system);
    }
    free_memory(atomic_exchange(&source->memory, memory));
    return bp_source_end(writer, status, &error);
}

static void free_source(void *context) {
    struct system_source *source = context;
    bp_subject_drop(source->subject);
    free_memory(atomic_load(&source->memory));
    free(source);
}

bugpack_status bp_source_system(const bp_report_context *context, bugpack_error *error) {
    if (bp_subject_is_further(context->subject)) {
        return BUGPACK_OK;
    }
    struct system_source *source = calloc(1, sizeof *source);
    if (source == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    source->subject = bp_subject_retain(context->subject);
    source->timeout_ms = context->settings->provider_timeout_ms;
    source->with_process = !context->settings->without_process;
    source->with_hostname = (context->settings->system_flags & BUGPACK_SYSTEM_HOSTNAME) != 0;
    source->asks_rpm = (context->settings->system_flags & BUGPACK_SYSTEM_RPM) != 0;
    atomic_init(&source->memory, NULL);
    const bp_provider_spec spec = {.name = "system.json",
                                   .form = BP_CONTENT_BYTES,
                                   .provide = provide,
                                   .context = source,
                                   .release = free_source,
                                   .limit_bytes = (size_t)4 << 20,
                                   .timeout_ms = context->settings->provider_timeout_ms};
    return bp_provider_list_add(context->providers, &spec, error);
}
