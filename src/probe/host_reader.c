/* The files of one thread, and what an unreadable one means. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/linux/files.h"
#include "platform/linux/host_text.h"
#include "platform/linux/proc_text.h"
#include "probe/host_private.h"

/* status lists up to 65,536 supplementary groups; 64 KiB hold any usual number. */
static const size_t text_bytes_max = (size_t)64 * 1024;

bool bp_host_reader_init(bp_host_reader *reader) {
    reader->process_fd = -1;
    reader->text = malloc(text_bytes_max);
    return reader->text != NULL;
}

void bp_host_reader_release(bp_host_reader *reader) {
    bp_file_close(reader->process_fd);
    reader->process_fd = -1;
    free(reader->text);
    reader->text = NULL;
}

/* Reads a whole file into the reader's text. Its length, or -1 with errno. */
static ssize_t read_file(bp_host_reader *reader, int dir_fd, const char *name) {
    return bp_proc_read_small(dir_fd, name, reader->text, text_bytes_max);
}

static int compare_numbers(const void *one, const void *other) {
    uint32_t left = *(const uint32_t *)one;
    uint32_t right = *(const uint32_t *)other;
    return (left > right) - (left < right);
}

int bp_host_list_ids(int directory_fd, uint32_t **ret_ids, size_t *ret_count) {
    int result = bp_proc_list_numbers(directory_fd, ret_ids, ret_count);
    if (*ret_count > 0) {
        qsort(*ret_ids, *ret_count, sizeof **ret_ids, compare_numbers);
    }
    return result;
}

/* Opens /proc/<tgid> unless it is the one that is open already. False with errno. */
static bool open_process(bp_host_reader *reader, uint64_t tgid) {
    char name[24];
    if (reader->process_fd >= 0 && reader->open_tgid == tgid) {
        return true;
    }
    bp_file_close(reader->process_fd);
    (void)snprintf(name, sizeof name, "%llu", (unsigned long long)tgid);
    reader->process_fd = openat(reader->proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    reader->open_tgid = tgid;
    return reader->process_fd >= 0;
}

/* A file that is missing while the thread still runs is one that this kernel does not have. */
static bp_host_cause cause_of(int thread_fd, int system_errno) {
    switch (system_errno) {
    case EACCES:
    case EPERM:
        return BP_HOST_CAUSE_DENIED;
    case ENOENT:
    case ESRCH:
        return faccessat(thread_fd, "stat", F_OK, 0) == 0 ? BP_HOST_CAUSE_MISSING
                                                          : BP_HOST_CAUSE_VANISHED;
    default:
        return BP_HOST_CAUSE_OTHER;
    }
}

typedef bool parse_group(const char *text, size_t text_bytes, bp_host_thread *thread);

static void read_group(bp_host_reader *reader, int thread_fd, const char *name, bp_host_group group,
                       parse_group *parse, bp_host_thread *thread) {
    ssize_t length = read_file(reader, thread_fd, name);
    if (length < 0) {
        reader->tally.unread[group][cause_of(thread_fd, errno)]++;
    } else if (!parse(reader->text, (size_t)length, thread)) {
        reader->tally.unread[group][BP_HOST_CAUSE_MALFORMED]++;
    }
}

/* One file for four groups; three of them are there only when the kernel counts them. */
static void read_sched(bp_host_reader *reader, int thread_fd, bp_host_thread *thread) {
    static const bp_host_group groups[] = {BP_HOST_SCHED, BP_HOST_WAKEUPS, BP_HOST_WAITS,
                                           BP_HOST_BLOCKS};
    ssize_t length = read_file(reader, thread_fd, "sched");
    bp_host_cause cause = length < 0 ? cause_of(thread_fd, errno) : BP_HOST_CAUSE_DISABLED;
    uint32_t found = length < 0 ? 0 : bp_host_parse_sched(reader->text, (size_t)length, thread);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if ((thread->measured >> groups[i] & 1u) == 0) {
            bool is_broken = (found >> groups[i] & 1u) != 0;
            reader->tally.unread[groups[i]][is_broken ? BP_HOST_CAUSE_MALFORMED : cause]++;
        }
    }
}

/*
 * Of the whole process, so read for its first thread only. A process without memory lacks nothing.
 */
static void read_memory(bp_host_reader *reader, int thread_fd, bp_host_thread *thread) {
    if (thread->tid == thread->tgid && !thread->is_kernel_thread && thread->state != 'Z' &&
        thread->state != 'X') {
        read_group(reader, thread_fd, "smaps_rollup", BP_HOST_MEMORY, bp_host_parse_smaps_rollup,
                   thread);
    }
}

static void read_cgroup(bp_host_reader *reader, int thread_fd, bp_host_thread *thread) {
    const char *path;
    size_t path_bytes;
    ssize_t length = read_file(reader, thread_fd, "cgroup");
    if (length > 0 && bp_proc_find_cgroup(reader->text, (size_t)length, &path, &path_bytes)) {
        thread->cgroup = bp_host_cgroups_count(reader->cgroups, path, path_bytes);
    }
}

static int compare_heaps(const void *one, const void *other) {
    const bp_thread_heap *left = one;
    const bp_thread_heap *right = other;
    return (left->tid > right->tid) - (left->tid < right->tid);
}

/* The counters that the first pass has read, if this is still the same thread. */
static void take_heap(bp_host_reader *reader, const bp_host_process *process,
                      bp_host_thread *thread) {
    bp_thread_heap key = {.tid = thread->tid};
    const bp_thread_heap *heap =
        process->heap_count == 0
            ? NULL
            : bsearch(&key, process->heap, process->heap_count, sizeof key, compare_heaps);
    if (heap != NULL && heap->is_measured && heap->birth == thread->start_ticks) {
        thread->counters[BP_HOST_ALLOCATED] = heap->allocated_bytes;
        thread->counters[BP_HOST_DEALLOCATED] = heap->deallocated_bytes;
        thread->measured |= 1u << BP_HOST_HEAP;
        reader->tally.heap_thread_count++;
    }
}

/* The name and the start time; false when both are gone, and the thread with them. */
static bool read_stat(bp_host_reader *reader, int thread_fd, bp_host_thread *thread) {
    ssize_t length = read_file(reader, thread_fd, "stat");
    int stat_errno = errno;
    if (length >= 0 &&
        bp_host_parse_stat(reader->text, (size_t)length, reader->ticks_per_sec, thread)) {
        return true;
    }
    bp_host_cause cause = length < 0 ? cause_of(thread_fd, stat_errno) : BP_HOST_CAUSE_MALFORMED;
    length = read_file(reader, thread_fd, "comm");
    if (length < 0) {
        return false;
    }
    size_t name_bytes =
        length > 0 && reader->text[length - 1] == '\n' ? (size_t)length - 1 : (size_t)length;
    (void)snprintf(thread->name, sizeof thread->name, "%.*s", (int)name_bytes, reader->text);
    reader->tally.unread[BP_HOST_STAT][cause]++;
    return true;
}

bool bp_host_read_thread(bp_host_reader *reader, const bp_host_process *process, uint64_t tid,
                         bp_host_thread *ret_thread) {
    char path[32];
    if (!open_process(reader, process->tgid)) {
        return false;
    }
    (void)snprintf(path, sizeof path, "task/%llu", (unsigned long long)tid);
    int thread_fd = openat(reader->process_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (thread_fd < 0) {
        return false;
    }
    memset(ret_thread, 0, sizeof *ret_thread);
    ret_thread->tgid = process->tgid;
    ret_thread->tid = tid;
    ret_thread->is_kernel_thread = process->is_kernel_thread;
    ret_thread->is_self = process->is_self;
    memcpy(ret_thread->process_name, process->name, sizeof ret_thread->process_name);
    bool is_there = read_stat(reader, thread_fd, ret_thread);
    if (is_there) {
        read_group(reader, thread_fd, "schedstat", BP_HOST_SCHEDSTAT, bp_host_parse_schedstat,
                   ret_thread);
        read_group(reader, thread_fd, "status", BP_HOST_STATUS, bp_host_parse_status, ret_thread);
        read_group(reader, thread_fd, "io", BP_HOST_IO, bp_host_parse_io, ret_thread);
        read_sched(reader, thread_fd, ret_thread);
        read_memory(reader, thread_fd, ret_thread);
        read_cgroup(reader, thread_fd, ret_thread);
        take_heap(reader, process, ret_thread);
    }
    (void)close(thread_fd);
    return is_there;
}

/* Takes the counters of a jemalloc's threads, or counts why there are none. */
static void probe_heap(bp_host_reader *reader, bp_host_process *process) {
    const bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_thread_heap_reading reading = {0};
    bp_host_summary *tally = &reader->tally;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_heap_probe(reader->prober, (pid_t)process->tgid, &plan, &reading, &error);
    if (status == BUGPACK_OK && reading.failure == BP_HEAP_FAILURE_NONE) {
        process->heap = reading.snapshots[0].threads;
        process->heap_count = reading.snapshots[0].thread_count;
        reading.snapshots[0].threads = NULL;
        reading.snapshots[0].thread_count = 0;
        tally->heap_processes[BP_HEAP_FAILURE_NONE]++;
    } else if (status == BUGPACK_OK &&
               bp_heap_failure_is_absence(reading.failure, reading.system_errno)) {
        tally->heap_absent_count++;
    } else if (status == BUGPACK_OK && reading.failure != BP_HEAP_FAILURE_PID_MISSING) {
        tally->heap_processes[reading.failure]++;
        (void)snprintf(tally->heap_reasons[reading.failure],
                       sizeof tally->heap_reasons[reading.failure], "%.255s", reading.reason);
    }
    bp_thread_heap_reading_release(&reading);
}

bool bp_host_read_process(bp_host_reader *reader, bp_host_process *process) {
    bp_proc_stat stat;
    bool is_living = true;
    if (!open_process(reader, process->tgid)) {
        return false;
    }
    int tasks_fd = openat(reader->process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks_fd < 0) {
        bool is_denied = errno == EACCES || errno == EPERM;
        reader->tally.denied_process_count += is_denied ? 1 : 0;
        return false;
    }
    (void)bp_host_list_ids(tasks_fd, &process->tids, &process->tid_count);
    (void)close(tasks_fd);
    ssize_t length = read_file(reader, reader->process_fd, "stat");
    if (length > 0 && bp_proc_parse_stat(reader->text, (size_t)length, &stat)) {
        memcpy(process->name, stat.name, sizeof process->name);
        process->is_kernel_thread = stat.is_kernel_thread;
        is_living = (stat.state != 'Z' && stat.state != 'X') || stat.thread_count > 1;
    }
    process->is_self = process->tgid == reader->self_tgid;
    if (reader->prober != NULL && is_living && !process->is_self && !process->is_kernel_thread) {
        probe_heap(reader, process);
    }
    return true;
}
