#include "machine/machine_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "machine/machine_private.h"
#include "platform/linux/files.h"
#include "platform/linux/thread_reader.h"

/* --- what every process and thread has used, read twice: the window of a capture ------------- */

static void release_usage(bp_machine_usage *usage) {
    free(usage->processes);
    free(usage->threads);
    *usage = (bp_machine_usage){.process_count = 0};
}

/* Counts what failed at one end of a window. What has ended, may not be read (EACCES, EPERM) or is
 * malformed (EBADMSG) is counted by the passes, which read all of it again. */
static void count_unused(bp_machine_summary *summary, int system_errno) {
    if (system_errno != 0 && system_errno != EACCES && system_errno != EPERM &&
        system_errno != EBADMSG && !bp_proc_is_gone(system_errno)) {
        bp_machine_summary_error(summary, system_errno)->file_count++;
    }
}

/* The scheduler's time, which is exact; in ticks where this kernel does not count it. 0 or an
 * errno. */
static int read_run_time(const bp_thread_reader *reader, uint64_t tid, uint64_t *ret_run_ns) {
    bp_thread_reading thread;
    bp_thread_read(reader, tid, 1u << BP_GROUP_SCHEDSTAT, &thread);
    int result = thread.errnos[BP_GROUP_SCHEDSTAT];
    *ret_run_ns = thread.counters[BP_COUNTER_RUN];
    if (result == ENOENT || result == EBADMSG) {
        /* Only here: ticks at one end and nanoseconds at the other differ in precision. */
        bp_thread_read(reader, tid, 1u << BP_GROUP_STAT, &thread);
        result = thread.errnos[BP_GROUP_STAT];
        *ret_run_ns = thread.counters[BP_COUNTER_USER_CPU] + thread.counters[BP_COUNTER_SYSTEM_CPU];
    }
    return result;
}

/* False without memory. */
static bool add_used_threads(bp_machine_usage *usage, const bp_thread_reader *reader,
                             bp_machine_used_process *process, bp_machine_summary *summary) {
    bp_proc_list list;
    int result = bp_proc_list_read(reader->dir_fd, reader->task, &list);
    bool has_memory = result != ENOMEM;
    count_unused(summary, result);
    bp_proc_list_sort(&list);
    process->first_thread = usage->thread_count;
    for (size_t i = 0; has_memory && i < list.count; i++) {
        uint64_t tid = list.items[i].id;
        uint64_t run_ns = 0;
        has_memory =
            bp_array_reserve(&usage->threads, usage->thread_count, &usage->thread_capacity);
        result = has_memory ? read_run_time(reader, tid, &run_ns) : ENOMEM;
        if (result == 0) {
            usage->threads[usage->thread_count++] = (bp_machine_used_thread){tid, run_ns};
        }
        count_unused(summary, result);
    }
    process->thread_count = usage->thread_count - process->first_thread;
    bp_proc_list_release(&list);
    return has_memory;
}

/* A process that has ended, or may not be read, is left out. False without memory. */
static bool add_used_process(bp_machine_usage *usage, int proc_fd, uint64_t tgid,
                             bp_machine_summary *summary) {
    bp_proc_stat stat;
    char task[32], text[4096];
    bool has_memory = true;
    const bp_thread_reader reader = {.dir_fd = proc_fd,
                                     .task = task,
                                     .ticks_per_sec = BP_NS_PER_SEC / usage->tick_ns,
                                     .text = text,
                                     .text_bytes = sizeof text};
    bp_machine_used_process process = {.tgid = tgid, .read_ns = bp_clock_monotonic_ns()};
    int result = bp_proc_read_stat(proc_fd, &stat, "%" PRIu64 "/stat", tgid);
    (void)snprintf(task, sizeof task, "%" PRIu64 "/task/", tgid);
    count_unused(summary, result);
    if (result == 0) {
        process.start_ticks = stat.start_ticks;
        process.cpu_ns = stat.cpu_ticks * usage->tick_ns;
        process.children_ns = stat.waited_ticks * usage->tick_ns;
        has_memory =
            bp_array_reserve(&usage->processes, usage->process_count, &usage->process_capacity) &&
            add_used_threads(usage, &reader, &process, summary);
        if (has_memory) {
            usage->processes[usage->process_count++] = process;
        }
    }
    return has_memory;
}

/* Reads what may be read, on one thread: 10,000 threads take a tenth of a second. What fails for
 * another reason than that it has ended or is denied is counted in the summary. NO_MEMORY. */
static bugpack_status read_usage(int proc_fd, uint64_t ticks_per_sec, const atomic_bool *stop,
                                 bp_machine_usage *ret_usage, bp_machine_summary *summary,
                                 bugpack_error *error) {
    bp_machine_usage usage = {.taken_ns = bp_clock_monotonic_ns(),
                              .boottime_ns = bp_clock_read_ns(CLOCK_BOOTTIME),
                              .tick_ns = BP_NS_PER_SEC / ticks_per_sec};
    bp_proc_list list;
    int result = bp_proc_list_read(proc_fd, NULL, &list);
    bool has_memory = result != ENOMEM;
    count_unused(summary, result);
    bp_proc_list_sort(&list);
    for (size_t i = 0; has_memory && i < list.count && !(stop != NULL && atomic_load(stop)); i++) {
        has_memory = add_used_process(&usage, proc_fd, list.items[i].id, summary);
    }
    bp_proc_list_release(&list);
    if (!has_memory) {
        release_usage(&usage);
        return bp_fail_memory(error, "read what all threads have used");
    }
    *ret_usage = usage;
    return BUGPACK_OK;
}

static const bp_machine_used_process *find_process(const bp_machine_usage *usage, uint64_t tgid) {
    return bp_array_find_u64(tgid, usage->processes, usage->process_count,
                             sizeof *usage->processes);
}

static const bp_machine_used_thread *
find_thread(const bp_machine_usage *usage, const bp_machine_used_process *process, uint64_t tid) {
    return process == NULL ? NULL
                           : bp_array_find_u64(tid, usage->threads + process->first_thread,
                                               process->thread_count, sizeof *usage->threads);
}

static uint64_t subtract(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* The use of a process's threads that are there at both ends, or were born in between. */
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
    const bp_thread_reading *read = &thread->read;
    const bp_machine_used_process *was = find_process(before, thread->tgid);
    const bp_machine_used_process *now = find_process(after, thread->tgid);
    const bp_machine_used_thread *end = find_thread(after, now, read->tid);
    if (end == NULL || !bp_thread_has(read, BP_GROUP_STAT)) {
        return; /* it began later */
    }
    if (was != NULL && was->start_ticks != now->start_ticks) {
        was = NULL;
    }
    const bp_machine_used_thread *begin = find_thread(before, was, read->tid);
    /* The time of a birth is rounded down. */
    bool is_new = read->stat.start_ticks * after->tick_ns + after->tick_ns > before->boottime_ns;
    window->is_born = begin == NULL && is_new;
    window->is_known = begin != NULL || is_new;
    if (window->is_known) {
        window->elapsed_ns =
            was != NULL ? now->read_ns - was->read_ns : after->taken_ns - before->taken_ns;
        window->cpu_ns = subtract(end->run_ns, begin != NULL ? begin->run_ns : 0);
        if (read->tid == thread->tgid) {
            compare_process(before, after, was, now, window);
        }
    }
}

/* --- two passes: over the processes, and over their threads ---------------------------------- */

static const size_t header_bytes_max = (size_t)256 << 20;
static const size_t body_bytes_max = (size_t)256 << 20;
static const uint64_t look_again_ns = 50 * BP_NS_PER_MS;

struct capture {
    const bp_machine_root *root;
    const bp_machine_plan *plan;
    int proc_fd;
    bp_machine_usage before, after;
    bp_machine_summary summary;
    bp_machine_process *processes;
    size_t process_count;
    bp_machine_cgroups cgroups;
    bp_buffer body; /* the threads, each with a comma before it */
};

static bool must_stop(const bp_machine_plan *plan) {
    return plan->stop != NULL && atomic_load_explicit(plan->stop, memory_order_relaxed);
}

static void read_processes(struct capture *capture, bp_machine_reader *reader) {
    bp_machine_summary *summary = &capture->summary;
    for (size_t i = 0; i < capture->process_count; i++) {
        if (must_stop(capture->plan)) {
            summary->is_cut = true;
            return;
        }
        int result = bp_machine_read_process(reader, &capture->processes[i]);
        if (result == 0) {
            summary->process_count++;
        } else if (bp_proc_is_gone(result)) {
            summary->vanished_process_count++;
        } else if (result == EACCES || result == EPERM) {
            summary->denied_process_count++;
        } else {
            bp_machine_summary_error(summary, result)->process_count++;
        }
    }
}

/* Appends a thread to the body. */
static void read_thread(struct capture *capture, bp_machine_reader *reader,
                        const bp_machine_process *process, uint64_t tid) {
    bp_machine_summary *summary = &capture->summary;
    bp_machine_thread thread;
    int result = bp_machine_read_thread(reader, process, tid, &thread);
    if (bp_proc_is_gone(result)) {
        summary->vanished_thread_count++;
        return;
    }
    if (result != 0) {
        bp_machine_summary_error(summary, result)->thread_count++;
        return;
    }
    summary->thread_count++;
    summary->kernel_thread_count += thread.read.stat.is_kernel_thread;
    if (capture->plan->window_ms > 0) {
        bp_machine_usage_compare(&capture->before, &capture->after, &thread);
    }
    bp_machine_print_thread(&thread, &capture->body);
    bp_thread_reading_release(&thread.read);
}

static bugpack_status read_threads(struct capture *capture, bp_machine_reader *reader,
                                   bugpack_error *error) {
    for (size_t i = 0; i < capture->process_count && !capture->summary.is_cut; i++) {
        const bp_machine_process *process = &capture->processes[i];
        for (size_t j = 0; j < process->threads.count && !capture->summary.is_cut; j++) {
            capture->summary.is_cut =
                capture->body.status != BUGPACK_OK || must_stop(capture->plan);
            if (!capture->summary.is_cut) {
                read_thread(capture, reader, process, process->threads.items[j].id);
            }
        }
    }
    if (capture->body.status == BUGPACK_ERR_LIMIT) {
        return bp_fail(error, BUGPACK_ERR_LIMIT,
                       "the threads of the machine take more than the limit of 256 MiB");
    }
    return capture->body.status == BUGPACK_OK
               ? BUGPACK_OK
               : bp_fail_memory(error, "write down the threads of the machine");
}

static bugpack_status list_processes(struct capture *capture, bugpack_error *error) {
    bp_proc_list list;
    int result = bp_proc_list_read(capture->proc_fd, NULL, &list);
    bp_proc_list_sort(&list);
    capture->processes = calloc(list.count + 1, sizeof *capture->processes);
    for (size_t i = 0; result == 0 && capture->processes != NULL && i < list.count; i++) {
        capture->processes[capture->process_count++].tgid = list.items[i].id;
    }
    bp_proc_list_release(&list);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot list the processes of the machine");
    }
    return capture->processes != NULL ? BUGPACK_OK
                                      : bp_fail_memory(error, "list the processes of the machine");
}

/* The header, now that everything is known, and the threads after it. */
static bugpack_status print_capture(struct capture *capture, bp_sink *sink, void *context,
                                    bugpack_error *error) {
    bp_machine_summary *summary = &capture->summary;
    bp_machine_cgroup *cgroups = NULL;
    bp_machine_header header = {.summary = summary,
                                .processes = capture->processes,
                                .process_count = capture->process_count,
                                .cgroup_count = capture->cgroups.count};
    bp_buffer text;
    bp_buffer_init(&text, header_bytes_max);
    int cgroup_fd = open(capture->root->cgroup_path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (cgroup_fd < 0 && errno != ENOENT && errno != ENOTDIR) {
        bp_machine_summary_error(summary, errno)->file_count++;
    }
    bp_machine_read_pressure(capture->proc_fd, header.pressure, summary);
    bool has_memory = bp_machine_cgroups_read(&capture->cgroups, cgroup_fd, &cgroups, summary);
    bp_file_close(cgroup_fd);
    if (!has_memory) {
        return bp_fail_memory(error, "list the cgroups of the machine");
    }
    header.cgroups = cgroups;
    bugpack_status status = bp_machine_print_header(&header, &text, error);
    if (status == BUGPACK_OK) {
        status = sink(context, text.data, text.size);
    }
    if (status == BUGPACK_OK && capture->body.size > 0) {
        status = sink(context, capture->body.data + 1, capture->body.size - 1);
    }
    if (status == BUGPACK_OK) {
        const char *tail = capture->body.size > 0 ? bp_machine_tail : bp_machine_tail_empty;
        status = sink(context, tail, strlen(tail));
    }
    free(cgroups);
    bp_buffer_release(&text);
    if (status != BUGPACK_OK && error != NULL && error->status == BUGPACK_OK) {
        (void)bp_fail(error, status, "cannot write the threads of the machine: %s",
                      bugpack_status_name(status));
    }
    return status;
}

/* Our own id as this /proc has it, and whether ids in it are those that system calls take. */
static uint64_t find_self(const struct capture *capture, bool *ret_has_our_ids) {
    char target[24];
    *ret_has_our_ids = false;
    ssize_t length = capture->root->is_recording
                         ? -1
                         : readlinkat(capture->proc_fd, "self", target, sizeof target - 1);
    if (length <= 0) {
        return 0;
    }
    target[length] = '\0';
    uint64_t self = strtoull(target, NULL, 10);
    *ret_has_our_ids = self == (uint64_t)getpid();
    return self;
}

/* Mounted with hidepid=2 or 4 it lists our own processes alone (proc(5)); then the first process of
 * the namespace exists and is not there. */
static bool hides_processes(const struct capture *capture) {
    bool has_first = capture->process_count > 0 && capture->processes[0].tgid == 1;
    return !has_first && (kill(1, 0) == 0 || errno == EPERM);
}

/* The window, before all else is read. */
static bugpack_status read_window(struct capture *capture, uint64_t ticks_per_sec,
                                  bugpack_error *error) {
    const bp_machine_plan *plan = capture->plan;
    bugpack_status status = read_usage(capture->proc_fd, ticks_per_sec, plan->stop,
                                       &capture->before, &capture->summary, error);
    uint64_t end_ns = capture->before.taken_ns + plan->window_ms * BP_NS_PER_MS;
    uint64_t now_ns = bp_clock_monotonic_ns();
    while (status == BUGPACK_OK && now_ns < end_ns && !must_stop(plan)) {
        bp_clock_sleep_until(now_ns + look_again_ns < end_ns ? now_ns + look_again_ns : end_ns);
        now_ns = bp_clock_monotonic_ns();
    }
    return status != BUGPACK_OK ? status
                                : read_usage(capture->proc_fd, ticks_per_sec, plan->stop,
                                             &capture->after, &capture->summary, error);
}

static bugpack_status read_machine(struct capture *capture, bugpack_error *error) {
    bp_machine_summary *summary = &capture->summary;
    long ticks = sysconf(_SC_CLK_TCK);
    bool has_our_ids;
    bugpack_status status = BUGPACK_OK;
    summary->ticks_per_sec = ticks > 0 ? (uint64_t)ticks : 100;
    if (capture->root->ticks_per_sec != 0) {
        summary->ticks_per_sec = capture->root->ticks_per_sec;
    }
    if (capture->plan->window_ms > 0) {
        status = read_window(capture, summary->ticks_per_sec, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_instant began = bp_clock_now();
    summary->captured_wall_ns = began.wall_ns;
    summary->boottime_ns = capture->root->is_recording ? 0 : bp_clock_read_ns(CLOCK_BOOTTIME);
    summary->self_tgid = find_self(capture, &has_our_ids);
    summary->window_ns = capture->after.taken_ns - capture->before.taken_ns;
    summary->is_root = geteuid() == 0;
    /* Captures of one boot have the same id, which a thread's ids and start do not show. */
    char text[37];
    if (bp_proc_read_small(capture->proc_fd, "sys/kernel/random/boot_id", text, 36) == 36) {
        memcpy(summary->boot_id, text, 36);
    }
    bp_machine_reader reader = {.proc_fd = capture->proc_fd,
                                .has_our_ids = has_our_ids,
                                .ticks_per_sec = summary->ticks_per_sec,
                                .cgroups = &capture->cgroups,
                                .prober = has_our_ids ? capture->plan->prober : NULL,
                                .self_tgid = summary->self_tgid,
                                .summary = summary};
    summary->is_heap_probed = reader.prober != NULL;
    status = list_processes(capture, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    summary->is_hidden = has_our_ids && hides_processes(capture);
    reader.text = malloc(BP_THREAD_TEXT_BYTES);
    if (reader.text == NULL) {
        return bp_fail_memory(error, "read the threads of the machine");
    }
    read_processes(capture, &reader);
    status = read_threads(capture, &reader, error);
    free(reader.text);
    summary->duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
    return status;
}

bugpack_status bp_machine_capture(const bp_machine_root *root, const bp_machine_plan *plan,
                                  bp_sink *sink, void *context, bp_machine_summary *ret_summary,
                                  bugpack_error *error) {
    struct capture capture = {.root = root, .plan = plan};
    capture.proc_fd = open(root->proc_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (capture.proc_fd < 0) {
        return errno == ENOENT || errno == ENOTDIR
                   ? bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there is no \"%s\"", root->proc_path)
                   : bp_fail_errno(error, errno, "cannot open \"%s\"", root->proc_path);
    }
    bp_buffer_init(&capture.body, body_bytes_max);
    bugpack_status status = read_machine(&capture, error);
    if (status == BUGPACK_OK) {
        status = print_capture(&capture, sink, context, error);
    }
    for (size_t i = 0; i < capture.process_count; i++) {
        bp_machine_process_release(&capture.processes[i]);
    }
    free(capture.processes);
    release_usage(&capture.before);
    release_usage(&capture.after);
    bp_machine_cgroups_release(&capture.cgroups);
    if (status == BUGPACK_OK) {
        *ret_summary = capture.summary;
    }
    bp_buffer_release(&capture.body);
    (void)close(capture.proc_fd);
    return status;
}
