/* The files of one process or thread, and what an unreadable one means. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "machine/machine_private.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/thread_reader.h"

/* As much of the arguments as one usually wants to see; process.json has all of one process. */
static const size_t command_line_bytes_max = 4096;

static bp_machine_cause cause_of(int system_errno) {
    switch (system_errno) {
    case EACCES:
    case EPERM:
        return BP_MACHINE_CAUSE_DENIED;
    case ENOENT:
        return BP_MACHINE_CAUSE_MISSING;
    case ESRCH:
        return BP_MACHINE_CAUSE_VANISHED;
    case ENODATA:
        return BP_MACHINE_CAUSE_DISABLED;
    case EBADMSG:
        return BP_MACHINE_CAUSE_MALFORMED;
    default:
        return BP_MACHINE_CAUSE_OTHER;
    }
}

static void read_cgroup(bp_machine_reader *reader, bp_machine_thread *thread) {
    const char *path;
    size_t path_bytes;
    ssize_t length =
        bp_proc_read_at(reader->proc_fd, reader->text, BP_THREAD_TEXT_BYTES,
                        "%" PRIu64 "/task/%" PRIu64 "/cgroup", thread->tgid, thread->read.tid);
    int result = length < 0 ? errno : 0;
    if (length > 0 && bp_proc_find_cgroup(reader->text, (size_t)length, NULL, &path, &path_bytes)) {
        thread->cgroup = bp_machine_cgroups_count(reader->cgroups, path, path_bytes);
        result = thread->cgroup == NULL ? errno : 0;
    }
    if (result != 0 && cause_of(result) == BP_MACHINE_CAUSE_OTHER) {
        bp_machine_summary_error(reader->summary, result)->file_count++;
    }
}

/* The counters that the first pass has read, if this is still the same thread, or why there are
 * none. Nobody has looked for those of a thread that began later. */
static void take_heap(bp_machine_reader *reader, const bp_machine_process *process,
                      bp_machine_thread *thread) {
    bp_thread_reading *read = &thread->read;
    const bp_thread_heap *heap =
        bp_array_find_u64(read->tid, process->heap, process->heap_count, sizeof *heap);
    if (process->heap_failure != BP_HEAP_FAILURE_NONE) {
        thread->heap_failure = bp_heap_failure_name(process->heap_failure);
    } else if (heap != NULL && heap->birth == read->stat.start_ticks && heap->is_measured) {
        read->counters[BP_COUNTER_ALLOCATED] = heap->allocated_bytes;
        read->counters[BP_COUNTER_DEALLOCATED] = heap->deallocated_bytes;
        read->measured |= 1u << BP_GROUP_HEAP;
        reader->summary->heap_thread_count++;
    } else if (heap != NULL && heap->birth == read->stat.start_ticks) {
        thread->heap_failure = bp_heap_failure_name(heap->failure);
        reader->summary->heap_unread_count++;
    }
}

/* The name of a thread whose stat cannot be read. 0 or an errno. */
static int read_name(const bp_thread_reader *files, bp_thread_reading *thread) {
    char name[sizeof thread->stat.name];
    ssize_t length = bp_proc_read_at(files->dir_fd, name, sizeof name, "%s%" PRIu64 "/comm",
                                     files->task, thread->tid);
    if (length < 0) {
        return errno;
    }
    (void)snprintf(thread->stat.name, sizeof name, "%.*s",
                   (int)(length - (length > 0 && name[length - 1] == '\n')), name);
    return 0;
}

int bp_machine_read_thread(bp_machine_reader *reader, const bp_machine_process *process,
                           uint64_t tid, bp_machine_thread *ret_thread) {
    static const uint32_t groups =
        ((1u << BP_MACHINE_GROUP_COUNT) - 1) & ~(1u << BP_GROUP_MEMORY | 1u << BP_GROUP_HEAP);
    char task[32];
    int result = 0;
    (void)snprintf(task, sizeof task, "%" PRIu64 "/task/", process->tgid);
    const bp_thread_reader files = {.dir_fd = reader->proc_fd,
                                    .task = task,
                                    .ticks_per_sec = reader->ticks_per_sec,
                                    .text = reader->text,
                                    .text_bytes = BP_THREAD_TEXT_BYTES};
    /* Memory is of the whole process, so read for its first thread only. */
    uint32_t memory = tid == process->tgid ? 1u << BP_GROUP_MEMORY : 0;
    *ret_thread = (bp_machine_thread){.tgid = process->tgid, .is_self = process->is_self};
    bp_thread_reading *read = &ret_thread->read;
    memcpy(ret_thread->process_name, process->name, sizeof ret_thread->process_name);
    bp_thread_read(&files, tid, groups | memory | 1u << BP_GROUP_AFFINITY, read);
    if (!bp_thread_has(read, BP_GROUP_STAT)) {
        read->stat.is_kernel_thread = process->is_kernel_thread;
        result = read_name(&files, read);
    }
    if (result != 0) {
        bp_thread_reading_release(read);
        return result;
    }
    /* Groups are counted by cause; a file is an error of its own if the cause is none of these. */
    for (bp_thread_group group = BP_GROUP_STAT; group < BP_MACHINE_GROUP_COUNT; group++) {
        bp_machine_cause cause = cause_of(read->errnos[group]);
        bool has_file = group <= BP_GROUP_SCHED || group == BP_GROUP_MEMORY;
        reader->summary->unread[group][cause] += read->errnos[group] != 0;
        if (read->errnos[group] != 0 && cause == BP_MACHINE_CAUSE_OTHER && has_file) {
            bp_machine_summary_error(reader->summary, read->errnos[group])->file_count++;
        }
    }
    read_cgroup(reader, ret_thread);
    take_heap(reader, process, ret_thread);
    return 0;
}

static void fail_heap(bp_machine_reader *reader, bp_machine_process *process,
                      bp_heap_failure failure, int system_errno, const char *reason) {
    bp_machine_summary *summary = reader->summary;
    process->heap_failure = failure;
    if (bp_heap_failure_is_absence(failure, system_errno)) {
        summary->heap_absent_count++;
    } else if (failure != BP_HEAP_FAILURE_PID_MISSING) {
        summary->heap_processes[failure]++;
        (void)snprintf(summary->heap_reasons[failure], sizeof summary->heap_reasons[failure],
                       "%.255s", reason);
        if (bp_heap_failure_is_trouble(failure, system_errno)) {
            bp_machine_summary_error(summary, system_errno)->file_count++;
        }
    }
}

/* Takes the counters of a jemalloc's threads, or notes why there are none. */
static void probe_heap(bp_machine_reader *reader, bp_machine_process *process) {
    const bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_thread_heap_reading reading = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_heap_probe(reader->prober, (pid_t)process->tgid, &plan, &reading, &error);
    if (status != BUGPACK_OK) {
        int system_errno = error.system_errno != 0 ? error.system_errno : ENOMEM;
        fail_heap(reader, process, BP_HEAP_FAILURE_SYSTEM, system_errno, error.message);
    } else if (reading.failure != BP_HEAP_FAILURE_NONE) {
        fail_heap(reader, process, reading.failure, reading.system_errno, reading.reason);
    } else {
        process->is_heap_measured = true;
        process->heap = reading.snapshots[0].threads;
        process->heap_count = reading.snapshots[0].thread_count;
        reading.snapshots[0].threads = NULL;
        reading.snapshots[0].thread_count = 0;
        reader->summary->heap_processes[BP_HEAP_FAILURE_NONE]++;
    }
    bp_thread_heap_reading_release(&reading);
}

/* A kernel thread has no arguments; those of a process that ends are gone. */
static void read_command_line(bp_machine_reader *reader, int process_fd, const bp_proc_stat *stat,
                              bp_machine_process *process) {
    ssize_t length =
        bp_proc_read_small(process_fd, "cmdline", reader->text, command_line_bytes_max + 1);
    if (length < 0 && !bp_proc_is_gone(errno)) {
        bp_machine_summary_error(reader->summary, errno)->file_count++;
    }
    if (length <= 0) {
        return;
    }
    process->is_command_line_cut = (size_t)length > command_line_bytes_max;
    size_t kept = process->is_command_line_cut
                      ? bp_proc_whole_words(reader->text, command_line_bytes_max)
                      : (size_t)length;
    if (!process->is_command_line_cut && reader->text[kept - 1] == '\0') {
        uint64_t count = reader->has_our_ids
                             ? bp_proc_read_argument_count((pid_t)process->tgid, stat->stack_start)
                             : 0;
        kept = bp_proc_trim_title(reader->text, kept, count);
    }
    process->command_line = malloc(kept);
    if (process->command_line == NULL) {
        bp_machine_summary_error(reader->summary, ENOMEM)->file_count++;
        return;
    }
    memcpy(process->command_line, reader->text, kept);
    process->command_line_bytes = kept;
}

int bp_machine_read_process(bp_machine_reader *reader, bp_machine_process *process) {
    bp_proc_stat stat = {.thread_count = 1};
    int process_fd =
        bp_proc_open_at(reader->proc_fd, O_PATH | O_DIRECTORY, "%" PRIu64, process->tgid);
    int result = process_fd < 0 ? errno : bp_proc_list_read(process_fd, "task", &process->threads);
    if (result == 0) {
        bp_proc_list_sort(&process->threads);
        result = bp_proc_read_stat(process_fd, &stat, "stat");
    }
    if (result != 0 && result != EBADMSG) {
        goto out;
    }
    result = 0;
    memcpy(process->name, stat.name, sizeof process->name);
    process->is_kernel_thread = stat.is_kernel_thread;
    process->is_self = process->tgid == reader->self_tgid;
    if (bp_proc_has_process_ended(&stat) || process->is_kernel_thread) {
        goto out;
    }
    read_command_line(reader, process_fd, &stat, process);
    if (reader->prober != NULL && process->is_self) {
        process->heap_failure = BP_HEAP_FAILURE_SELF;
    } else if (reader->prober != NULL) {
        probe_heap(reader, process);
    }
out:
    bp_file_close(process_fd);
    return result;
}
