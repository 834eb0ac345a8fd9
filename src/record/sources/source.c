/*
 * Code that the sources share, and the sources that take no more than a call.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "machine/system.h"
#include "model/heap_state.h"
#include "platform/allocator.h"
#include "sources/source.h"

uint64_t bp_source_deadline_ns(const bp_source *source, unsigned percent) {
    return bp_clock_monotonic_ns() + source->timeout_ms * BP_NS_PER_MS * percent / 100;
}

int bp_source_end(bugpack_writer *writer, bugpack_status status, const bugpack_error *error) {
    if (status == BUGPACK_ERR_UNSUPPORTED || status == BUGPACK_ERR_NO_PROCESS ||
        status == BUGPACK_ERR_DENIED) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "%s", error->message);
        writer->line.is_missing = false;
        return 0;
    }
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error->message);
}

void bp_source_free_stacks(bp_stacks_text *stacks) {
    if (stacks != NULL) {
        bp_buffer_release(&stacks->text);
        free(stacks);
    }
}

/*
 * Under a time limit like a host's provider: the kernel can block a reader of /proc/<pid>/cmdline
 * or maps for as long as the process holds its memory map locked.
 */
int bp_source_process(bugpack_writer *writer, void *context) {
    const bp_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_subject_write_facts(source->subject, writer, &error);
    bool is_gone = status == BUGPACK_ERR_NO_PROCESS ||
                   bp_subject_check_program(source->subject, NULL) != BUGPACK_OK;
    if (status != BUGPACK_OK && is_gone) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "%s", error.message);
        return 0;
    }
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

/*
 * Under a time limit like a host's provider: where a thread of the host hangs inside the allocator
 * or the dynamic linker, this hangs too, and only this entry is lost.
 */
int bp_source_heap_state(bugpack_writer *writer, void *context) {
    bp_heap_reading reading;
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)context;
    bugpack_status status = bp_allocator_read(&reading, &error);
    if (status == BUGPACK_OK) {
        status = bp_heap_state_print(&reading.state, &writer->content, &error);
    }
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "%s", reading.unused);
    if (reading.missing[0] != '\0') {
        bp_writer_truncate(writer, true, "%s", reading.missing);
    }
    return 0;
}

static bugpack_status read_system(const bp_source *source, bugpack_writer *writer,
                                  bp_system *ret_system, bugpack_error *error) {
    const bp_system_plan plan = {.with_process = !source->without_process,
                                 .pid = source->subject->target.pid,
                                 .with_hostname = source->with_hostname,
                                 .oom_kills_before = source->oom_kills_before,
                                 .groups_before = &source->groups_before};
    bugpack_error ended = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_system_read(&plan, ret_system, error);
    if (status == BUGPACK_OK && plan.with_process &&
        bp_subject_check(source->subject, &ended) == BUGPACK_ERR_NO_PROCESS) {
        bp_system_forget_process(ret_system); /* it may be of the next process with this id */
        if (!bp_system_read_groups_again(&source->groups_before, ret_system)) {
            status = bp_fail_memory(error, "describe the system");
            bp_system_release(ret_system);
        }
        (void)snprintf(writer->line.note, sizeof writer->line.note, "without the process: %s",
                       ended.message);
    }
    return status;
}

/* Under a time limit like a host's provider: a file may be on a disk that does not answer. */
int bp_source_system(bugpack_writer *writer, void *context) {
    bp_system system;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = read_system(context, writer, &system, &error);
    if (status == BUGPACK_OK) {
        if (system.unread_count > 0) {
            bp_writer_truncate(writer, bp_errno_is_trouble(system.unread_errno),
                               "%zu files could not be read: %s", system.unread_count,
                               strerror(system.unread_errno));
        }
        status = bp_system_print(&system, &writer->content, &error);
        bp_system_release(&system);
    }
    return bp_source_end(writer, status, &error);
}
