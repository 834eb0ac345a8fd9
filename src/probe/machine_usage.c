/* What every process and thread of the machine has used, read twice: the window of a capture. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
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

/* The scheduler's time, which is exact; in ticks where this kernel does not count it. False: the
 * thread has ended, or may not be read. */
static bool read_thread(int process_fd, uint32_t tid, uint64_t tick_ns, uint64_t *ret_run_ns) {
    char text[128];
    bp_proc_stat stat;
    ssize_t length = bp_proc_read_at(process_fd, text, sizeof text, "task/%u/schedstat", tid);
    if (length > 0 && text[0] >= '0' && text[0] <= '9') {
        *ret_run_ns = strtoull(text, NULL, 10);
        return true;
    }
    if (bp_proc_read_stat(process_fd, &stat, "task/%u/stat", tid) != 0) {
        return false;
    }
    *ret_run_ns = stat.cpu_ticks * tick_ns;
    return true;
}

/* False without memory. */
static bool add_threads(bp_machine_usage *usage, int process_fd, bp_machine_used_process *process) {
    uint32_t *tids = NULL;
    size_t count = 0;
    bool has_memory = true;
    int tasks_fd = openat(process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (tasks_fd >= 0) {
        has_memory = bp_machine_list_ids(tasks_fd, &tids, &count) != ENOMEM;
    }
    bp_file_close(tasks_fd);
    process->first_thread = usage->thread_count;
    for (size_t i = 0; has_memory && i < count; i++) {
        uint64_t run_ns;
        has_memory =
            bp_array_reserve(&usage->threads, usage->thread_count, &usage->thread_capacity);
        if (has_memory && read_thread(process_fd, tids[i], usage->tick_ns, &run_ns)) {
            usage->threads[usage->thread_count++] = (bp_machine_used_thread){tids[i], run_ns};
        }
    }
    process->thread_count = usage->thread_count - process->first_thread;
    free(tids);
    return has_memory;
}

/* A process that has ended, or may not be read, is left out. False without memory. */
static bool add_process(bp_machine_usage *usage, int proc_fd, uint32_t tgid) {
    bp_proc_stat stat;
    bool has_memory = true;
    int process_fd = bp_proc_open_at(proc_fd, O_PATH | O_DIRECTORY, "%u", tgid);
    bp_machine_used_process process = {.tgid = tgid, .read_ns = bp_clock_monotonic_ns()};
    if (process_fd >= 0 && bp_proc_read_stat(process_fd, &stat, "stat") == 0) {
        process.start_ticks = stat.start_ticks;
        process.cpu_ns = stat.cpu_ticks * usage->tick_ns;
        process.children_ns = stat.waited_ticks * usage->tick_ns;
        has_memory =
            bp_array_reserve(&usage->processes, usage->process_count, &usage->process_capacity) &&
            add_threads(usage, process_fd, &process);
        if (has_memory) {
            usage->processes[usage->process_count++] = process;
        }
    }
    bp_file_close(process_fd);
    return has_memory;
}

bugpack_status bp_machine_usage_read(int proc_fd, uint64_t ticks_per_sec, const atomic_bool *stop,
                                     bp_machine_usage *ret_usage, bugpack_error *error) {
    bp_machine_usage usage = {.taken_ns = bp_clock_monotonic_ns(),
                              .boottime_ns = bp_clock_read_ns(CLOCK_BOOTTIME),
                              .tick_ns = BP_NS_PER_SEC / ticks_per_sec};
    uint32_t *tgids = NULL;
    size_t count = 0;
    bool has_memory = bp_machine_list_ids(proc_fd, &tgids, &count) != ENOMEM;
    for (size_t i = 0; has_memory && i < count && !(stop != NULL && atomic_load(stop)); i++) {
        has_memory = add_process(&usage, proc_fd, tgids[i]);
    }
    free(tgids);
    if (!has_memory) {
        bp_machine_usage_release(&usage);
        return bp_fail_memory(error, "read what all threads have used");
    }
    *ret_usage = usage;
    return BUGPACK_OK;
}

static int compare_processes(const void *key, const void *item) {
    uint64_t tgid = *(const uint64_t *)key;
    const bp_machine_used_process *process = item;
    return (tgid > process->tgid) - (tgid < process->tgid);
}

static int compare_threads(const void *key, const void *item) {
    uint64_t tid = *(const uint64_t *)key;
    const bp_machine_used_thread *thread = item;
    return (tid > thread->tid) - (tid < thread->tid);
}

static const bp_machine_used_process *find_process(const bp_machine_usage *usage, uint64_t tgid) {
    return usage->process_count == 0 ? NULL
                                     : bsearch(&tgid, usage->processes, usage->process_count,
                                               sizeof *usage->processes, compare_processes);
}

static const bp_machine_used_thread *
find_thread(const bp_machine_usage *usage, const bp_machine_used_process *process, uint64_t tid) {
    return process == NULL || process->thread_count == 0
               ? NULL
               : bsearch(&tid, usage->threads + process->first_thread, process->thread_count,
                         sizeof *usage->threads, compare_threads);
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
