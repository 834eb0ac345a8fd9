/*
 * files.json: the open files of the target and its descendants.
 */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "process/open_files.h"
#include "sources/source.h"

struct file_readings {
    bp_open_files *items;
    size_t count;
    bp_fd_search search;
};

/* A descendant that has ended has no files; each other failure is one of the target's. */
static bugpack_status read_files(const bp_source *source, const bp_subject_process *processes,
                                 size_t count, struct file_readings *readings,
                                 bugpack_error *error) {
    uint64_t deadline_ns = bp_source_deadline_ns(source, BP_SOURCE_READING_PERCENT);
    size_t left = BP_OPEN_FILE_MAX;
    readings->items = calloc(count, sizeof *readings->items);
    if (readings->items == NULL) {
        return bp_fail_memory(error, "read the open files of processes");
    }
    for (size_t i = 0; i < count; i++) {
        bp_open_files *files = &readings->items[readings->count];
        bugpack_status status =
            bp_open_files_read(processes[i].pid, NULL, left, deadline_ns, files, error);
        if (status != BUGPACK_OK && (i == 0 || status == BUGPACK_ERR_NO_MEMORY)) {
            return status;
        }
        if (status == BUGPACK_OK && (i == 0 || files->birth == processes[i].birth)) {
            left -= files->file_count;
            readings->count++;
        } else if (status == BUGPACK_OK) {
            bp_open_files_release(files);
        }
    }
    bugpack_status status = bp_open_files_find_ends(readings->items, readings->count, deadline_ns,
                                                    &readings->search, error);
    bp_open_files_find_locks(readings->items, readings->count);
    return status == BUGPACK_OK ? bp_subject_check(source->subject, error) : status;
}

static void note_file_losses(const struct file_readings *readings, bugpack_writer *writer) {
    size_t passed_over_count = 0, unread_count = 0;
    int unread_errno = 0;
    bool are_sockets_cut = false;
    for (size_t i = 0; i < readings->count; i++) {
        const bp_open_files *files = &readings->items[i];
        passed_over_count += files->passed_over_count;
        unread_count += files->unread_count;
        are_sockets_cut = are_sockets_cut || files->are_sockets_cut || files->sockets_errno != 0;
        if (unread_errno == 0) {
            unread_errno = files->unread_errno != 0 ? files->unread_errno : files->sockets_errno;
        }
    }
    if (passed_over_count > 0) {
        bp_writer_truncate(writer, true,
                           "%zu more open files are not listed: the limit is %d, or there was no "
                           "time",
                           passed_over_count, BP_OPEN_FILE_MAX);
    } else if (unread_count > 0) {
        bp_writer_truncate(writer, bp_errno_is_trouble(unread_errno),
                           "%zu open files could not be read: %s", unread_count,
                           strerror(unread_errno));
    } else if (are_sockets_cut) {
        bp_writer_truncate(writer, unread_errno == 0 || bp_errno_is_trouble(unread_errno),
                           "not all tables of sockets were read: %s",
                           unread_errno != 0 ? strerror(unread_errno) : "there was no time");
    } else if (readings->search.is_cut) {
        bp_writer_truncate(writer, false,
                           "the search for the other ends of pipes and sockets met its limit");
    }
}

/* Under a time limit like a host's provider, as threads.json. */
int bp_source_open_files(bugpack_writer *writer, void *context) {
    const bp_source *source = context;
    bp_subject_process *processes = NULL;
    size_t count = 0;
    struct file_readings readings = {.count = 0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_subject_list(source->subject, &processes, &count, &error);
    if (status == BUGPACK_OK) {
        status = read_files(source, processes, count, &readings, &error);
    }
    if (status == BUGPACK_OK) {
        note_file_losses(&readings, writer);
        status = bp_open_files_print(readings.items, readings.count, &readings.search,
                                     &writer->content, &error);
    }
    for (size_t i = 0; i < readings.count; i++) {
        bp_open_files_release(&readings.items[i]);
    }
    free(readings.items);
    free(processes);
    return bp_source_end(writer, status, &error);
}
