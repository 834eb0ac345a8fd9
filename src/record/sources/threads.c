/*
 * threads.json: the threads of the target and its descendants.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/threads.h"
#include "process/threads.h"
#include "sources/source.h"

struct thread_readings {
    bp_process_threads *items;
    size_t count;
    bp_fd_search search;
};

/* A descendant that has ended has no threads; each other failure is one of the target's. */
static bugpack_status read_threads(const bp_source *source, const bp_subject_process *processes,
                                   size_t count, struct thread_readings *readings,
                                   bugpack_error *error) {
    uint64_t deadline_ns = bp_source_deadline_ns(source, BP_SOURCE_READING_PERCENT);
    readings->items = calloc(count, sizeof *readings->items);
    if (readings->items == NULL) {
        return bp_fail_memory(error, "read the threads of processes");
    }
    for (size_t i = 0; i < count; i++) {
        bp_process_threads *threads = &readings->items[readings->count];
        bugpack_status status = bp_threads_read(processes[i].pid, deadline_ns, threads, error);
        if (status != BUGPACK_OK && (i == 0 || status == BUGPACK_ERR_NO_MEMORY)) {
            return status;
        }
        if (status == BUGPACK_OK && (i == 0 || threads->birth == processes[i].birth)) {
            readings->count++;
        } else if (status == BUGPACK_OK) {
            bp_process_threads_release(threads);
        }
    }
    bugpack_status status = bp_threads_find_files(readings->items, readings->count, deadline_ns,
                                                  &readings->search, error);
    if (status == BUGPACK_OK) {
        status = bp_threads_find_processes(readings->items, readings->count, deadline_ns, error);
    }
    return status == BUGPACK_OK ? bp_subject_check(source->subject, error) : status;
}

/* The manifest has the first deadlock, because it explains the report. */
static bugpack_status note_deadlock(const struct thread_readings *readings, bugpack_writer *writer,
                                    bugpack_error *error) {
    bp_buffer sentence;
    bp_buffer_init(&sentence, sizeof writer->line.note);
    for (size_t i = 0; i < readings->count && sentence.size == 0; i++) {
        const bp_process_threads *process = &readings->items[i];
        unsigned char *is_seen = calloc(process->thread_count + 1, 1);
        size_t first = is_seen == NULL ? SIZE_MAX : bp_deadlock_next(process, is_seen);
        free(is_seen);
        if (is_seen == NULL) {
            return bp_fail_memory(error, "find a deadlock");
        }
        if (first != SIZE_MAX) {
            (void)bp_deadlock_describe(process, first, &sentence); /* as much as fits */
        }
    }
    if (sentence.size > 0) {
        (void)snprintf(writer->line.note, sizeof writer->line.note, "deadlock: %.*s",
                       (int)sentence.size, sentence.data);
    }
    bp_buffer_release(&sentence);
    return BUGPACK_OK;
}

/* Facts that the kernel withholds are omitted, and the report is complete; no time is a loss. */
static void note_thread_losses(const struct thread_readings *readings, bugpack_writer *writer) {
    size_t unread_count = 0, passed_over_count = 0;
    int unread_errno = 0;
    for (size_t i = 0; i < readings->count; i++) {
        unread_count += readings->items[i].unread_count;
        passed_over_count += readings->items[i].passed_over_count;
        unread_errno = unread_errno == 0 ? readings->items[i].unread_errno : unread_errno;
    }
    if (passed_over_count > 0) {
        bp_writer_truncate(writer, true, "there was no time to read %zu more thread%s",
                           passed_over_count, passed_over_count == 1 ? "" : "s");
    } else if (unread_count > 0) {
        bp_writer_truncate(writer, bp_errno_is_trouble(unread_errno),
                           "the system calls of %zu thread%s could not be read: %s", unread_count,
                           unread_count == 1 ? "" : "s", strerror(unread_errno));
    }
    if (writer->line.note[0] == '\0' && readings->items[0].kernel_stack_errno != 0) {
        (void)snprintf(writer->line.note, sizeof writer->line.note, "without kernel stacks: %s",
                       strerror(readings->items[0].kernel_stack_errno));
    }
}

/*
 * Under a time limit like a host's provider: the kernel can block a reader of these files while the
 * process holds its memory map locked, or begins another program.
 */
int bp_source_threads(bugpack_writer *writer, void *context) {
    const bp_source *source = context;
    bp_subject_process *processes = NULL;
    size_t count = 0;
    struct thread_readings readings = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_subject_list(source->subject, &processes, &count, &error);
    if (status == BUGPACK_OK) {
        status = read_threads(source, processes, count, &readings, &error);
    }
    if (status == BUGPACK_OK) {
        status = note_deadlock(&readings, writer, &error);
    }
    if (status == BUGPACK_OK) {
        note_thread_losses(&readings, writer);
        status = bp_threads_print(readings.items, readings.count, &readings.search,
                                  &writer->content, &error);
    }
    for (size_t i = 0; i < readings.count; i++) {
        bp_process_threads_release(&readings.items[i]);
    }
    free(readings.items);
    free(processes);
    return bp_source_end(writer, status, &error);
}
