/*
 * stacks.json and stacks.txt: the stacks of the threads, read once for both.
 */
#include "stacks/stacks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "sources/source.h"

/* The shares of the provider's time after which no more threads are read, and no symbols sought. */
static const unsigned reading_share_percent = 40;
static const unsigned symbols_share_percent = 60;

static bugpack_status read_stacks(const bp_source *source, bugpack_writer *writer,
                                  bp_stacks *ret_stacks, bugpack_error *error) {
    bp_subject_process *processes = NULL;
    size_t count;
    bp_stacks_plan plan = {.deadline_ns = bp_source_deadline_ns(source, reading_share_percent),
                           .symbols_until_ns = bp_source_deadline_ns(source, symbols_share_percent),
                           .stops_threads = source->stacks != BUGPACK_STACKS_BLOCKED,
                           .helper_path = source->helper_path,
                           .is_helper_ptracer = source->stacks == BUGPACK_STACKS_ALL_PTRACER,
                           .stop = &writer->is_abandoned};
    pid_t pid = bp_subject_target(source->subject)->pid;
    bugpack_status status = BUGPACK_OK;
    if (pid != 0) {
        status = bp_subject_list(source->subject, &processes, &count, error);
        plan.birth = status == BUGPACK_OK ? processes[0].birth : 0;
        free(processes);
    }
    status = status == BUGPACK_OK ? bp_subject_check_program(source->subject, error) : status;
    return status == BUGPACK_OK ? bp_stacks_read(pid, &plan, ret_stacks, error) : status;
}

static void note(const bp_stacks *stacks, bugpack_writer *writer) {
    size_t blocked_count = bp_stacks_count(stacks, BP_STACK_BLOCKED);
    size_t running_count = bp_stacks_count(stacks, BP_STACK_RUNNING);
    size_t stopped_count = bp_stacks_count(stacks, BP_STACK_STOPPED);
    size_t rest_count = stacks->thread_count - blocked_count - running_count - stopped_count;
    char stopped[80] = "", running[64] = "", loss[BP_STACKS_LOSS_BYTES];
    if (stopped_count > 0) {
        (void)snprintf(stopped, sizeof stopped, "; %zu stopped, for at most %" PRIu64 " us each",
                       stopped_count, bp_stacks_longest_stop_us(stacks));
    }
    if (running_count > 0) {
        (void)snprintf(running, sizeof running, "; %zu running, without a stack", running_count);
    }
    (void)snprintf(writer->line.note, sizeof writer->line.note, "threads: %zu blocked%s%s",
                   blocked_count, stopped, running);
    if (bp_stacks_describe_loss(stacks, loss)) {
        bp_writer_truncate(writer, true, "%s", loss);
    } else if (stacks->passed_over_count > 0) {
        bp_writer_truncate(writer, true, "%zu thread%s passed over: no time, or over a limit",
                           stacks->passed_over_count,
                           stacks->passed_over_count == 1 ? " was" : "s were");
    } else if (rest_count > 0) {
        bp_writer_truncate(writer, false, "%zu thread%s ran meanwhile or could not be read",
                           rest_count, rest_count == 1 ? "" : "s");
    }
}

static bugpack_status new_stacks(const bp_source *source, bugpack_writer *writer,
                                 bp_stacks **ret_stacks, bugpack_error *error) {
    bp_stacks *stacks = calloc(1, sizeof *stacks);
    bugpack_status status = stacks == NULL ? bp_fail_memory(error, "read stacks")
                                           : read_stacks(source, writer, stacks, error);
    if (status == BUGPACK_OK) {
        *ret_stacks = stacks;
    } else {
        free(stacks);
    }
    return status;
}

int bp_source_stacks_json(bugpack_writer *writer, void *context) {
    bp_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_stacks *stacks = NULL;
    bp_source_free_stacks(atomic_exchange(&source->stacks_left, NULL));
    bugpack_status status = new_stacks(source, writer, &stacks, &error);
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    note(stacks, writer);
    status = bp_stacks_print_json(stacks, &writer->content, &error);
    /* Once this call was given up, the second provider may have to do with a later report. */
    if (!atomic_load(&writer->is_abandoned)) {
        stacks = atomic_exchange(&source->stacks_left, stacks);
    }
    bp_source_free_stacks(stacks);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}

int bp_source_stacks_text(bugpack_writer *writer, void *context) {
    bp_source *source = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_stacks *stacks = atomic_exchange(&source->stacks_left, NULL);
    bugpack_status status =
        source->without_stacks_json ? new_stacks(source, writer, &stacks, &error) : BUGPACK_OK;
    if (status != BUGPACK_OK) {
        return bp_source_end(writer, status, &error);
    }
    if (stacks == NULL) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "stacks.json has no stacks either");
        writer->line.is_missing = false;
        return 0;
    }
    note(stacks, writer);
    status = bp_stacks_print_text(stacks, &writer->content, &error);
    bp_source_free_stacks(stacks);
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error.message);
}
