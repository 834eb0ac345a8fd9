/*
 * The files of one thread, and what an unreadable one means; and what every process and thread of
 * the machine has used, read twice: the window of a capture.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/machine_text.h"
#include "platform/linux/proc_text.h"
#include "probe/machine_private.h"

int bp_machine_list_ids(int directory_fd, uint32_t **ret_ids, size_t *ret_count) {
    int result = bp_proc_list_numbers(directory_fd, ret_ids, ret_count);
    if (*ret_count > 0) {
        qsort(*ret_ids, *ret_count, sizeof **ret_ids, bp_proc_compare_numbers);
    }
    return result;
}

void bp_machine_usage_release(bp_machine_usage *usage) {
    free(usage->processes);
    free(usage->threads);
    *usage = (bp_machine_usage){.process_count = 0};
}

/* Counts what failed at one end of a window. What has ended, may not be read (EACCES, EPERM) or is
 * malformed (EBADMSG) is counted by the passes, which read all of it again. */
static void count_unused(bp_machine_summary *summary, int system_errno) {
    if (system_errno != 0 && system_errno != EACCES && system_errno != EPERM &&
        system_errno != EBADMSG && !bp_machine_is_gone(system_errno)) {
        bp_machine_summary_error(summary, system_errno)->file_count++;
    }
}

/* The scheduler's time, which is exact; in ticks where this kernel does not count it. 0 or an
 * errno. */
static int read_run_time(int process_fd, uint32_t tid, uint64_t tick_ns, uint64_t *ret_run_ns) {
    char text[128];
    bp_proc_stat stat;
    ssize_t length = bp_proc_read_at(process_fd, text, sizeof text, "task/%u/schedstat", tid);
    if (length > 0 && text[0] >= '0' && text[0] <= '9') {
        *ret_run_ns = strtoull(text, NULL, 10);
        return 0;
    }
    if (length < 0 && !bp_machine_is_gone(errno)) {
        return errno; /* ticks at one end and nanoseconds at the other would be a wrong difference
                       */
    }
    int result = bp_proc_read_stat(process_fd, &stat, "task/%u/stat", tid);
    *ret_run_ns = result == 0 ? stat.cpu_ticks * tick_ns : 0;
    return result;
}

/* False without memory. */
static bool add_threads(bp_machine_usage *usage, int process_fd, bp_machine_used_process *process,
                        bp_machine_summary *summary) {
    uint32_t *tids = NULL;
    size_t count = 0;
    int tasks_fd = openat(process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = tasks_fd < 0 ? errno : bp_machine_list_ids(tasks_fd, &tids, &count);
    bool has_memory = result != ENOMEM;
    bp_file_close(tasks_fd);
    count_unused(summary, result);
    process->first_thread = usage->thread_count;
    for (size_t i = 0; has_memory && i < count; i++) {
        uint64_t run_ns = 0;
        has_memory =
            bp_array_reserve(&usage->threads, usage->thread_count, &usage->thread_capacity);
        result = has_memory ? read_run_time(process_fd, tids[i], usage->tick_ns, &run_ns) : ENOMEM;
        if (result == 0) {
            usage->threads[usage->thread_count++] = (bp_machine_used_thread){tids[i], run_ns};
        }
        count_unused(summary, result);
    }
    process->thread_count = usage->thread_count - process->first_thread;
    free(tids);
    return has_memory;
}

/* A process that has ended, or may not be read, is left out. False without memory. */
static bool add_process(bp_machine_usage *usage, int proc_fd, uint32_t tgid,
                        bp_machine_summary *summary) {
    bp_proc_stat stat;
    bool has_memory = true;
    int process_fd = bp_proc_open_at(proc_fd, O_PATH | O_DIRECTORY, "%u", tgid);
    int result = process_fd < 0 ? errno : 0;
    bp_machine_used_process process = {.tgid = tgid, .read_ns = bp_clock_monotonic_ns()};
    result = result == 0 ? bp_proc_read_stat(process_fd, &stat, "stat") : result;
    count_unused(summary, result);
    if (result == 0) {
        process.start_ticks = stat.start_ticks;
        process.cpu_ns = stat.cpu_ticks * usage->tick_ns;
        process.children_ns = stat.waited_ticks * usage->tick_ns;
        has_memory =
            bp_array_reserve(&usage->processes, usage->process_count, &usage->process_capacity) &&
            add_threads(usage, process_fd, &process, summary);
        if (has_memory) {
            usage->processes[usage->process_count++] = process;
        }
    }
    bp_file_close(process_fd);
    return has_memory;
}

bugpack_status bp_machine_usage_read(int proc_fd, uint64_t ticks_per_sec, const atomic_bool *stop,
                                     bp_machine_usage *ret_usage, bp_machine_summary *summary,
                                     bugpack_error *error) {
    bp_machine_usage usage = {.taken_ns = bp_clock_monotonic_ns(),
                              .boottime_ns = bp_clock_read_ns(CLOCK_BOOTTIME),
                              .tick_ns = BP_NS_PER_SEC / ticks_per_sec};
    uint32_t *tgids = NULL;
    size_t count = 0;
    int result = bp_machine_list_ids(proc_fd, &tgids, &count);
    bool has_memory = result != ENOMEM;
    count_unused(summary, result);
    for (size_t i = 0; has_memory && i < count && !(stop != NULL && atomic_load(stop)); i++) {
        has_memory = add_process(&usage, proc_fd, tgids[i], summary);
    }
    free(tgids);
    if (!has_memory) {
        bp_machine_usage_release(&usage);
        return bp_fail_memory(error, "read what all threads have used");
    }
    *ret_usage = usage;
    return BUGPACK_OK;
}

static const bp_machine_used_process *find_process(const bp_machine_usage *usage, uint64_t tgid) {
    return usage->process_count == 0 ? NULL
                                     : bsearch(&tgid, usage->processes, usage->process_count,
                                               sizeof *usage->processes, bp_array_compare_u64);
}

static const bp_machine_used_thread *
find_thread(const bp_machine_usage *usage, const bp_machine_used_process *process, uint64_t tid) {
    return process == NULL || process->thread_count == 0
               ? NULL
               : bsearch(&tid, usage->threads + process->first_thread, process->thread_count,
                         sizeof *usage->threads, bp_array_compare_u64);
}

static uint64_t subtract(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* What the threads of a process have used that are there at both ends, or were born in between. */
static uint64_t sum_threads(const bp_machine_usage *before, const bp_machine_usage *after,
                            const bp_machine_used_process *was,
                            const bp_machine_used_process *now) {
    uint64_t sum_ns = 0;
    for (size_t i = 0; i < now->thread_count; i++) {
        const bp_machine_used_thread *thread = &after->threads[now->first_thread + i];
        const bp_machine_used_thread *old = find_thread(before, was, thread->tid);
        sum_ns += subtract(thread->run_ns, old != NULL ? old->run_ns : 0);
    }
    return sum_ns;
}

/* The sum of all threads has those that have ended, in ticks; that of the present ones is exact. */
static void compare_process(const bp_machine_usage *before, const bp_machine_usage *after,
                            const bp_machine_used_process *was, const bp_machine_used_process *now,
                            bp_machine_window *window) {
    static const bp_machine_used_process none = {.tgid = 0};
    uint64_t threads_ns = sum_threads(before, after, was, now);
    was = was != NULL ? was : &none;
    window->has_process = true;
    window->process_ns = subtract(now->cpu_ns, was->cpu_ns);
    window->process_ns = window->process_ns > threads_ns ? window->process_ns : threads_ns;
    window->children_ns = subtract(now->children_ns, was->children_ns);
}

void bp_machine_usage_compare(const bp_machine_usage *before, const bp_machine_usage *after,
                              bp_machine_thread *thread) {
    bp_machine_window *window = &thread->window;
    const bp_machine_used_process *was = find_process(before, thread->tgid);
    const bp_machine_used_process *now = find_process(after, thread->tgid);
    const bp_machine_used_thread *end = find_thread(after, now, thread->tid);
    if (end == NULL || !thread->has_start) {
        return; /* it began later */
    }
    if (was != NULL && was->start_ticks != now->start_ticks) {
        was = NULL;
    }
    const bp_machine_used_thread *begin = find_thread(before, was, thread->tid);
    /* The time of a birth is rounded down. */
    bool is_new = thread->start_ticks * after->tick_ns + after->tick_ns > before->boottime_ns;
    window->is_born = begin == NULL && is_new;
    window->is_known = begin != NULL || is_new;
    if (window->is_known) {
        window->elapsed_ns =
            was != NULL ? now->read_ns - was->read_ns : after->taken_ns - before->taken_ns;
        window->cpu_ns = subtract(end->run_ns, begin != NULL ? begin->run_ns : 0);
        if (thread->tid == thread->tgid) {
            compare_process(before, after, was, now, window);
        }
    }
}

/* status lists up to 65,536 supplementary groups; 64 KiB hold any usual number. */
static const size_t text_bytes_max = (size_t)64 * 1024;

/* As much of the arguments as one usually wants to see; process.json has all of one process. */
static const size_t command_line_bytes_max = 4096;

bool bp_machine_reader_init(bp_machine_reader *reader) {
    reader->process_fd = -1;
    reader->text = malloc(text_bytes_max);
    return reader->text != NULL;
}

void bp_machine_reader_release(bp_machine_reader *reader) {
    bp_file_close(reader->process_fd);
    reader->process_fd = -1;
    free(reader->text);
    reader->text = NULL;
}

/* Reads a whole file into the reader's text. Its length, or -1 with errno. */
static ssize_t read_file(bp_machine_reader *reader, int dir_fd, const char *name) {
    return bp_proc_read_small(dir_fd, name, reader->text, text_bytes_max);
}

/* Opens /proc/<tgid> unless it is the one that is open already. 0 or an errno. */
static int open_process(bp_machine_reader *reader, uint64_t tgid) {
    if (reader->process_fd >= 0 && reader->open_tgid == tgid) {
        return 0;
    }
    bp_file_close(reader->process_fd);
    reader->process_fd =
        bp_proc_open_at(reader->proc_fd, O_PATH | O_DIRECTORY, "%llu", (unsigned long long)tgid);
    reader->open_tgid = tgid;
    return reader->process_fd >= 0 ? 0 : errno;
}

/* A file that is missing while the thread still runs is one that this kernel does not have. */
static bp_machine_cause cause_of(int thread_fd, int system_errno) {
    switch (system_errno) {
    case EACCES:
    case EPERM:
        return BP_MACHINE_CAUSE_DENIED;
    case ENOENT:
    case ESRCH:
        return faccessat(thread_fd, "stat", F_OK, 0) == 0 ? BP_MACHINE_CAUSE_MISSING
                                                          : BP_MACHINE_CAUSE_VANISHED;
    default:
        return BP_MACHINE_CAUSE_OTHER;
    }
}

/* Counts a file of a thread that could not be read, and returns why. */
static bp_machine_cause count_failure(bp_machine_reader *reader, int thread_fd, int system_errno) {
    bp_machine_cause cause = cause_of(thread_fd, system_errno);
    if (cause == BP_MACHINE_CAUSE_OTHER) {
        bp_machine_summary_error(&reader->tally, system_errno)->file_count++;
    }
    return cause;
}

typedef bool parse_group(const char *text, size_t text_bytes, bp_machine_thread *thread);

static void read_group(bp_machine_reader *reader, int thread_fd, const char *name,
                       bp_machine_group group, parse_group *parse, bp_machine_thread *thread) {
    ssize_t length = read_file(reader, thread_fd, name);
    if (length < 0) {
        reader->tally.unread[group][count_failure(reader, thread_fd, errno)]++;
    } else if (!parse(reader->text, (size_t)length, thread)) {
        reader->tally.unread[group][BP_MACHINE_CAUSE_MALFORMED]++;
    }
}

/* One file for four groups; three of them are there only when the kernel counts them. */
static void read_sched(bp_machine_reader *reader, int thread_fd, bp_machine_thread *thread) {
    static const bp_machine_group groups[] = {BP_MACHINE_SCHED, BP_MACHINE_WAKEUPS,
                                              BP_MACHINE_WAITS, BP_MACHINE_BLOCKS};
    ssize_t length = read_file(reader, thread_fd, "sched");
    bp_machine_cause cause =
        length < 0 ? count_failure(reader, thread_fd, errno) : BP_MACHINE_CAUSE_DISABLED;
    uint32_t found = length < 0 ? 0 : bp_machine_parse_sched(reader->text, (size_t)length, thread);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        if ((thread->measured >> groups[i] & 1u) == 0) {
            bool is_broken = (found >> groups[i] & 1u) != 0;
            reader->tally.unread[groups[i]][is_broken ? BP_MACHINE_CAUSE_MALFORMED : cause]++;
        }
    }
}

/*
 * Of the whole process, so read for its first thread only. A process without memory lacks nothing.
 */
static void read_memory(bp_machine_reader *reader, int thread_fd, bp_machine_thread *thread) {
    if (thread->tid == thread->tgid && !thread->is_kernel_thread && thread->state != 'Z' &&
        thread->state != 'X') {
        read_group(reader, thread_fd, "smaps_rollup", BP_MACHINE_MEMORY,
                   bp_machine_parse_smaps_rollup, thread);
    }
}

static void read_cgroup(bp_machine_reader *reader, int thread_fd, bp_machine_thread *thread) {
    const char *path;
    size_t path_bytes;
    ssize_t length = read_file(reader, thread_fd, "cgroup");
    if (length < 0) {
        (void)count_failure(reader, thread_fd, errno);
    } else if (bp_proc_find_cgroup(reader->text, (size_t)length, &path, &path_bytes)) {
        thread->cgroup = bp_machine_cgroups_count(reader->cgroups, path, path_bytes);
        if (thread->cgroup == NULL) {
            bp_machine_summary_error(&reader->tally, errno)->file_count++;
        }
    }
}

/* The counters that the first pass has read, if this is still the same thread, or why there are
 * none. Nobody has looked for those of a thread that began later. */
static void take_heap(bp_machine_reader *reader, const bp_machine_process *process,
                      bp_machine_thread *thread) {
    bp_thread_heap key = {.tid = thread->tid};
    const bp_thread_heap *heap =
        process->heap_count == 0
            ? NULL
            : bsearch(&key, process->heap, process->heap_count, sizeof key, bp_array_compare_u64);
    if (process->heap_failure != BP_HEAP_FAILURE_NONE) {
        thread->heap_failure = bp_heap_failure_name(process->heap_failure);
    } else if (heap != NULL && heap->birth == thread->start_ticks && heap->is_measured) {
        thread->counters[BP_MACHINE_ALLOCATED] = heap->allocated_bytes;
        thread->counters[BP_MACHINE_DEALLOCATED] = heap->deallocated_bytes;
        thread->measured |= 1u << BP_MACHINE_HEAP;
        reader->tally.heap_thread_count++;
    } else if (heap != NULL && heap->birth == thread->start_ticks) {
        thread->heap_failure = bp_heap_failure_name(heap->failure);
        reader->tally.heap_unread_count++;
    }
}

/* The name and the start time. 0, or the errno when both cannot be read. */
static int read_stat(bp_machine_reader *reader, int thread_fd, bp_machine_thread *thread) {
    ssize_t length = read_file(reader, thread_fd, "stat");
    int stat_errno = errno;
    if (length >= 0 &&
        bp_machine_parse_stat(reader->text, (size_t)length, reader->ticks_per_sec, thread)) {
        return 0;
    }
    bool is_malformed = length >= 0;
    length = read_file(reader, thread_fd, "comm");
    if (length < 0) {
        return errno;
    }
    size_t name_bytes =
        length > 0 && reader->text[length - 1] == '\n' ? (size_t)length - 1 : (size_t)length;
    (void)snprintf(thread->name, sizeof thread->name, "%.*s", (int)name_bytes, reader->text);
    bp_machine_cause cause =
        is_malformed ? BP_MACHINE_CAUSE_MALFORMED : count_failure(reader, thread_fd, stat_errno);
    reader->tally.unread[BP_MACHINE_STAT][cause]++;
    return 0;
}

int bp_machine_read_thread(bp_machine_reader *reader, const bp_machine_process *process,
                           uint64_t tid, bp_machine_thread *ret_thread) {
    int result = open_process(reader, process->tgid);
    if (result != 0) {
        return result;
    }
    int thread_fd = bp_proc_open_at(reader->process_fd, O_PATH | O_DIRECTORY, "task/%llu",
                                    (unsigned long long)tid);
    if (thread_fd < 0) {
        return errno;
    }
    memset(ret_thread, 0, sizeof *ret_thread);
    ret_thread->tgid = process->tgid;
    ret_thread->tid = tid;
    ret_thread->is_kernel_thread = process->is_kernel_thread;
    ret_thread->is_self = process->is_self;
    memcpy(ret_thread->process_name, process->name, sizeof ret_thread->process_name);
    result = read_stat(reader, thread_fd, ret_thread);
    if (result == 0) {
        read_group(reader, thread_fd, "schedstat", BP_MACHINE_SCHEDSTAT, bp_machine_parse_schedstat,
                   ret_thread);
        read_group(reader, thread_fd, "status", BP_MACHINE_STATUS, bp_machine_parse_status,
                   ret_thread);
        read_group(reader, thread_fd, "io", BP_MACHINE_IO, bp_machine_parse_io, ret_thread);
        read_sched(reader, thread_fd, ret_thread);
        read_memory(reader, thread_fd, ret_thread);
        read_cgroup(reader, thread_fd, ret_thread);
        take_heap(reader, process, ret_thread);
        if (reader->before != NULL) {
            bp_machine_usage_compare(reader->before, reader->after, ret_thread);
        }
    }
    (void)close(thread_fd);
    return result;
}

static void fail_heap(bp_machine_reader *reader, bp_machine_process *process,
                      bp_heap_failure failure, int system_errno, const char *reason) {
    bp_machine_summary *tally = &reader->tally;
    process->heap_failure = failure;
    if (bp_heap_failure_is_absence(failure, system_errno)) {
        tally->heap_absent_count++;
    } else if (failure != BP_HEAP_FAILURE_PID_MISSING) {
        tally->heap_processes[failure]++;
        (void)snprintf(tally->heap_reasons[failure], sizeof tally->heap_reasons[failure], "%.255s",
                       reason);
        if (bp_heap_failure_is_trouble(failure, system_errno)) {
            bp_machine_summary_error(tally, system_errno)->file_count++;
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
        reader->tally.heap_processes[BP_HEAP_FAILURE_NONE]++;
    }
    bp_thread_heap_reading_release(&reading);
}

/* A kernel thread has no arguments; those of a process that ends are gone. */
static void read_command_line(bp_machine_reader *reader, const bp_proc_stat *stat,
                              bp_machine_process *process) {
    ssize_t length =
        bp_proc_read_small(reader->process_fd, "cmdline", reader->text, command_line_bytes_max + 1);
    if (length < 0 && !bp_machine_is_gone(errno)) {
        bp_machine_summary_error(&reader->tally, errno)->file_count++;
    }
    if (length <= 0) {
        return;
    }
    process->is_command_line_cut = (size_t)length > command_line_bytes_max;
    size_t kept = process->is_command_line_cut ? command_line_bytes_max : (size_t)length;
    if (!process->is_command_line_cut && reader->text[kept - 1] == '\0') {
        uint64_t count = reader->has_our_ids
                             ? bp_proc_read_argument_count((pid_t)process->tgid, stat->stack_start)
                             : 0;
        kept = bp_proc_trim_title(reader->text, kept, count);
    }
    process->command_line = malloc(kept);
    if (process->command_line == NULL) {
        bp_machine_summary_error(&reader->tally, ENOMEM)->file_count++;
        return;
    }
    memcpy(process->command_line, reader->text, kept);
    process->command_line_bytes = kept;
}

int bp_machine_read_process(bp_machine_reader *reader, bp_machine_process *process) {
    bp_proc_stat stat = {.thread_count = 1};
    int result = open_process(reader, process->tgid);
    if (result != 0) {
        return result;
    }
    int tasks_fd = openat(reader->process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks_fd < 0) {
        return errno;
    }
    result = bp_machine_list_ids(tasks_fd, &process->tids, &process->tid_count);
    (void)close(tasks_fd);
    if (result != 0) {
        return result;
    }
    ssize_t length = read_file(reader, reader->process_fd, "stat");
    if (length < 0) {
        return errno;
    }
    if (bp_proc_parse_stat(reader->text, (size_t)length, &stat)) {
        memcpy(process->name, stat.name, sizeof process->name);
        process->is_kernel_thread = stat.is_kernel_thread;
    }
    process->is_self = process->tgid == reader->self_tgid;
    if (bp_proc_has_process_ended(&stat) || process->is_kernel_thread) {
        return 0;
    }
    read_command_line(reader, &stat, process);
    if (reader->prober != NULL && process->is_self) {
        process->heap_failure = BP_HEAP_FAILURE_SELF;
    } else if (reader->prober != NULL) {
        probe_heap(reader, process);
    }
    return 0;
}
