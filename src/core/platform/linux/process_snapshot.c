/*
 * Reading the counters of a process: our own through clocks, any other through its files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/process_private.h"
#include "platform/linux/thread_reader.h"

/* One of so many known threads is read again at a time. */
enum { reread_share = 10 };

bugpack_status bp_process_list_threads(const bp_task *process, bp_proc_list *ret_threads,
                                       bugpack_error *error) {
    bp_proc_list threads;
    int result = bp_proc_list_read(process->threads_fd, NULL, &threads);
    if (result == 0) {
        *ret_threads = threads;
        return BUGPACK_OK;
    }
    bp_proc_list_release(&threads);
    return result == ENOMEM ? bp_fail_memory(error, "list the threads of a process")
                            : bp_process_fail(process, result, "list the threads of", error);
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/*
 * One of our own threads. Its clock id is the complement of its id, with bits for "of one thread"
 * and "time on the scheduler" (include/linux/posix-timers_types.h); for a thread that has ended it
 * is EINVAL.
 */
static int read_own_clock(bp_thread_counters *thread) {
    struct timespec cpu;
    clockid_t clock = (clockid_t)(~(unsigned)thread->tid << 3 | 6u);
    if (clock_gettime(clock, &cpu) != 0) {
        return errno == EINVAL ? ESRCH : errno;
    }
    thread->cpu = (uint64_t)cpu.tv_sec * BP_NS_PER_SEC + (uint64_t)cpu.tv_nsec;
    return 0;
}

/* Any thread, from its stat. EBADMSG when that makes no sense. */
static int read_thread(const bp_task *process, bool with_names, bp_thread_counters *thread) {
    bp_proc_stat stat;
    int result =
        bp_proc_read_stat(process->threads_fd, &stat, "%llu/stat", (unsigned long long)thread->tid);
    if (result != 0) {
        return result;
    }
    thread->birth = stat.start_ticks;
    thread->cpu = stat.cpu_ticks;
    thread->system_cpu = stat.system_ticks;
    thread->has_system_cpu = true;
    thread->page_faults = stat.minor_faults + stat.major_faults;
    thread->is_awake = stat.state == 'R';
    if (with_names) {
        memcpy(thread->name, stat.name, sizeof thread->name);
    }
    return 0;
}

/*
 * The names and births of our own threads, which cost an open, a read and a close each: read of new
 * threads and, when asked for, of a tenth of the others. The kernel lists threads in the order of
 * their births, so each that is between two that are still there has ended.
 */
static bugpack_status remember_threads(bp_task *process, bp_task_snapshot *snapshot,
                                       const bp_proc_list *list, bugpack_error *error) {
    bp_known_threads *known = &process->known;
    bp_thread_counters *threads = snapshot->threads;
    size_t count = snapshot->thread_count;
    bp_known_thread *items = calloc(count > 0 ? count : 1, sizeof *items);
    if (items == NULL) {
        return bp_fail_memory(error, "remember the threads of a process");
    }
    for (size_t i = 0, at = 0; i < count; i++) {
        while (at < known->count && known->items[at].tid != threads[i].tid) {
            at++;
        }
        items[i] =
            (bp_known_thread){.tid = (uint32_t)threads[i].tid, .inode = list->items[i].inode};
        if (at < known->count && known->items[at].inode == list->items[i].inode) {
            items[i] = known->items[at++];
        }
        /* A thread gets its name soon after its birth, so it is read twice. */
        if (items[i].read_count < 2 || (known->must_reread && i % reread_share == known->turn)) {
            /* If this fails, as in a host without descriptors, the last reading stays. */
            bp_thread_counters thread = {.tid = items[i].tid};
            if (read_thread(process, true, &thread) == 0) {
                items[i].birth = thread.birth;
                memcpy(items[i].name, thread.name, sizeof items[i].name - 1);
                items[i].read_count += items[i].read_count < 2;
            }
        }
        threads[i].birth = items[i].birth;
        memcpy(threads[i].name, items[i].name, sizeof items[i].name);
    }
    free(known->items);
    *known = (bp_known_threads){
        .items = items, .count = count, .turn = (known->turn + known->must_reread) % reread_share};
    return BUGPACK_OK;
}

/* Reads the counters of the listed threads, and takes those that have ended off the list. */
static bugpack_status read_counters(const bp_task *process, bool with_names, bp_proc_list *list,
                                    bp_task_snapshot *snapshot, bugpack_error *error) {
    size_t listed_count = list->count;
    list->count = 0;
    for (size_t i = 0; i < listed_count; i++) {
        bp_thread_counters *thread = &snapshot->threads[list->count];
        *thread = (bp_thread_counters){.tid = list->items[i].id, .pid = process->pid};
        int result =
            process->is_own ? read_own_clock(thread) : read_thread(process, with_names, thread);
        if (result == 0) {
            list->items[list->count++] = list->items[i];
        } else if (bp_proc_is_gone(result)) {
            snapshot->vanished_count++;
        } else {
            return bp_fail_process_errno(error, result, "cannot read thread %llu of process %d",
                                         (unsigned long long)thread->tid, (int)process->pid);
        }
    }
    snapshot->thread_count = list->count;
    return BUGPACK_OK;
}

static bugpack_status read_threads(bp_task *process, bool with_names, bp_task_snapshot *snapshot,
                                   bugpack_error *error) {
    bp_proc_list list = {0};
    bugpack_status status = bp_process_list_threads(process, &list, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    snapshot->threads = calloc(list.count > 0 ? list.count : 1, sizeof *snapshot->threads);
    status = snapshot->threads == NULL ? bp_fail_memory(error, "list the threads of a process")
                                       : read_counters(process, with_names, &list, snapshot, error);
    if (status == BUGPACK_OK && process->is_own && with_names) {
        status = remember_threads(process, snapshot, &list, error);
    }
    bp_proc_list_release(&list);
    return status;
}

/* A kernel thread and a zombie have no memory: their statm holds zeros. */
static bugpack_status take_memory(const bp_task *process, const char *text, size_t length,
                                  bp_task_snapshot *snapshot, bugpack_error *error) {
    uint64_t size_pages, resident_pages;
    if (!bp_proc_parse_statm(text, length, &size_pages, &resident_pages)) {
        return bp_fail(error, BUGPACK_ERR_IO, "cannot make sense of statm of process %d",
                       (int)process->pid);
    }
    snapshot->has_memory = size_pages > 0;
    if (snapshot->has_memory) {
        snapshot->vm_size_bytes = multiply(size_pages, process->root.page_bytes);
        snapshot->rss_bytes = multiply(resident_pages, process->root.page_bytes);
    }
    return BUGPACK_OK;
}

static bugpack_status read_memory(const bp_task *process, bp_task_snapshot *snapshot,
                                  bugpack_error *error) {
    char text[256];
    ssize_t length = pread(process->statm_fd, text, sizeof text, 0);
    return length < 0 ? bp_process_fail(process, errno, "read statm of", error)
                      : take_memory(process, text, (size_t)length, snapshot, error);
}

/* When the first thread ends before the others, only theirs show the memory of the process. */
static bugpack_status read_memory_of_others(const bp_task *process, bp_task_snapshot *snapshot,
                                            bugpack_error *error) {
    char text[256];
    int fd = bp_proc_open_living_thread(process->threads_fd, NULL);
    ssize_t length = fd < 0 ? -1 : bp_proc_read_small(fd, "statm", text, sizeof text);
    bugpack_status status = BUGPACK_OK;
    if (length < 0 && !bp_proc_is_gone(errno)) {
        status = bp_process_fail(process, errno, "read statm of", error);
    } else if (length > 0) {
        status = take_memory(process, text, (size_t)length, snapshot, error);
    }
    bp_file_close(fd);
    return status;
}

/* Where our own stack begins, a child of ours has executed nothing since it was forked: what it is
 * to run, as the command of `bugpack run`, begins with it. */
static uint64_t find_image(const bp_task *process, const bp_proc_stat *stat) {
    bp_proc_stat own;
    bool is_child = process->root.has_our_ids && stat->parent_pid == (uint64_t)getpid();
    return is_child && bp_proc_read_stat(AT_FDCWD, &own, "/proc/self/stat") == 0 &&
                   own.stack_start == stat->stack_start
               ? 0
               : stat->stack_start;
}

/* The CPU time of the whole process, and when that was. */
static bugpack_status read_process_cpu(const bp_task *process, bp_task_snapshot *snapshot,
                                       bugpack_error *error) {
    snapshot->taken_ns =
        process->root.is_recording ? process->root.monotonic_ns : bp_clock_monotonic_ns();
    snapshot->boottime_ns = bp_process_boottime_ns(process);
    snapshot->birth_unit_ns = BP_NS_PER_SEC / process->root.ticks_per_sec;
    if (process->is_own) {
        snapshot->cpu_unit_ns = 1;
        snapshot->process_cpu = bp_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
        return BUGPACK_OK;
    }
    bp_proc_stat stat;
    bugpack_status status = bp_process_read_stat(process, &stat, error);
    if (status == BUGPACK_OK) {
        snapshot->cpu_unit_ns = BP_NS_PER_SEC / process->root.ticks_per_sec;
        snapshot->process_cpu = stat.cpu_ticks;
        snapshot->waited_cpu = stat.waited_ticks;
        snapshot->first_cpu = stat.cpu_ticks + stat.waited_ticks;
        snapshot->image = find_image(process, &stat);
    }
    return status;
}

bugpack_status bp_process_snapshot(bp_task *process, bool with_names,
                                   bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = bp_process_hold(process, error);
    if (status == BUGPACK_OK) {
        status = read_process_cpu(process, &snapshot, error);
    }
    if (status != BUGPACK_OK) {
        goto out;
    }
    snapshot.has_uptime = bp_task_uptime(process, &snapshot.uptime_ns);
    status = read_memory(process, &snapshot, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = read_threads(process, with_names, &snapshot, error);
    if (status == BUGPACK_OK && !snapshot.has_memory && snapshot.thread_count > 1) {
        status = read_memory_of_others(process, &snapshot, error);
    }
    if (status == BUGPACK_OK && !process->is_own) {
        bp_proc_stat stat;
        status = bp_process_read_stat(process, &stat, error);
    }
    if (status != BUGPACK_OK) {
        goto out;
    }
    *ret_snapshot = snapshot;
    snapshot = (bp_task_snapshot){0};
out:
    bp_task_snapshot_release(&snapshot);
    return status;
}

bugpack_status bp_task_read_totals(bp_task *process, bp_task_totals *ret_totals,
                                   bugpack_error *error) {
    bp_task_snapshot memory = {0};
    bp_proc_stat stat;
    bugpack_status status = bp_process_hold(process, error);
    uint64_t taken_ns = bp_clock_monotonic_ns();
    if (status == BUGPACK_OK) {
        status = bp_process_read_stat(process, &stat, error);
    }
    if (status == BUGPACK_OK) {
        status = read_memory(process, &memory, error);
    }
    if (status == BUGPACK_OK) {
        *ret_totals = (bp_task_totals){
            .taken_ns = taken_ns,
            .cpu_ns = multiply(stat.cpu_ticks, BP_NS_PER_SEC / process->root.ticks_per_sec),
            .has_memory = memory.has_memory,
            .rss_bytes = memory.rss_bytes,
            .vm_size_bytes = memory.vm_size_bytes,
            .thread_count = stat.thread_count,
            .state = stat.state};
    }
    return status;
}

/* The groups that only a thread which is awake may have changed by the next snapshot. The kernel
 * may keep its input and output to itself, as what ptrace(2) guards. */
static bugpack_status read_switches(const bp_thread_reader *reader, bp_thread_counters *thread,
                                    bugpack_error *error) {
    static const bp_thread_group groups[] = {BP_GROUP_STATUS, BP_GROUP_SCHEDSTAT, BP_GROUP_IO};
    static const uint32_t activity = 1u << BP_GROUP_SCHEDSTAT | 1u << BP_GROUP_IO;
    bp_thread_reading read;
    bp_thread_read(reader, thread->tid, 1u << BP_GROUP_STATUS | (thread->is_awake ? activity : 0),
                   &read);
    for (size_t i = 0; i < sizeof groups / sizeof groups[0]; i++) {
        int result = read.errnos[groups[i]];
        bool is_refused = groups[i] == BP_GROUP_IO && (result == EACCES || result == EPERM);
        if (result != 0 && result != EBADMSG && !is_refused && !bp_proc_is_gone(result)) {
            return bp_fail_process_errno(error, result, "cannot read thread %llu of process %d",
                                         (unsigned long long)thread->tid, (int)thread->pid);
        }
    }
    thread->has_switches = bp_thread_has(&read, BP_GROUP_STATUS);
    thread->voluntary_switches = read.counters[BP_COUNTER_VOLUNTARY_SWITCHES];
    thread->involuntary_switches = read.counters[BP_COUNTER_INVOLUNTARY_SWITCHES];
    thread->has_run_delay = bp_thread_has(&read, BP_GROUP_SCHEDSTAT);
    thread->run_delay_ns = read.counters[BP_COUNTER_RUN_DELAY];
    thread->has_io = bp_thread_has(&read, BP_GROUP_IO);
    thread->read_chars = read.counters[BP_COUNTER_READ_CHARS];
    thread->written_chars = read.counters[BP_COUNTER_WRITTEN_CHARS];
    thread->write_calls = read.counters[BP_COUNTER_WRITE_CALLS];
    return BUGPACK_OK;
}

bugpack_status bp_task_read_switches(const bp_task *process, bp_task_snapshot *snapshot,
                                     bugpack_error *error) {
    char below[24] = "";
    bugpack_status status = BUGPACK_OK;
    if (process->is_own) {
        return BUGPACK_OK;
    }
    const bp_thread_reader reader = {.dir_fd =
                                         process->has_tree ? process->root.fd : process->threads_fd,
                                     .task = below,
                                     .text = malloc(BP_THREAD_TEXT_BYTES),
                                     .text_bytes = BP_THREAD_TEXT_BYTES};
    if (reader.text == NULL) {
        return bp_fail_memory(error, "read the threads of a process");
    }
    for (size_t i = 0; i < snapshot->thread_count && status == BUGPACK_OK; i++) {
        if (process->has_tree) {
            (void)snprintf(below, sizeof below, "%d/task/", (int)snapshot->threads[i].pid);
        }
        status = read_switches(&reader, &snapshot->threads[i], error);
    }
    free(reader.text);
    return status;
}

void bp_task_reread_names(bp_task *task) {
    task->known.must_reread = true;
}

/* Every process whose parent this one is. 0, or an errno. */
static int scan_all(const bp_task *process, int proc_fd, bp_pid_list *children) {
    bp_proc_list list;
    bp_proc_stat stat;
    int result = bp_proc_list_read(proc_fd, ".", &list);
    for (size_t i = 0; result == 0 && i < list.count; i++) {
        uint64_t pid = list.items[i].id;
        if (pid > 0 && pid <= INT32_MAX &&
            bp_proc_read_stat(proc_fd, &stat, "%u/stat", (unsigned)pid) == 0 &&
            stat.parent_pid == (uint64_t)process->pid && !bp_pid_list_add(children, (pid_t)pid)) {
            result = ENOMEM;
        }
    }
    bp_proc_list_release(&list);
    return result;
}

bugpack_status bp_process_note(const bp_task *process, int proc_fd, bp_task_snapshot *snapshot,
                               bp_tree_member *ret_member, bp_pid_list *children) {
    *ret_member = (bp_tree_member){.pid = process->pid,
                                   .start = process->start_ticks,
                                   .cpu = snapshot->process_cpu + snapshot->waited_cpu,
                                   .waited = snapshot->waited_cpu};
    /* Best effort, except for memory: a process that ends meanwhile may hide another. What fails
     * for another reason hides at least one, for all we know. */
    bool has_file = false;
    bool has_failed = false;
    int result = 0;
    for (size_t i = 0; i < snapshot->thread_count && result != ENOMEM; i++) {
        result = bp_proc_list_children(process->threads_fd, snapshot->threads[i].tid, children);
        has_file = has_file || result == 0;
        has_failed = has_failed || bp_errno_is_trouble(result);
    }
    /* Kernels without CONFIG_PROC_CHILDREN have no such file. */
    if (!has_file && result != ENOMEM) {
        result = scan_all(process, proc_fd, children);
        has_failed = bp_errno_is_trouble(result);
    }
    snapshot->unread_count += has_failed;
    return result == ENOMEM ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
}

static bugpack_status read_once(const bp_proc_root *root, pid_t pid, bool with_names,
                                bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                bp_pid_list *children) {
    bp_task *process = NULL;
    bp_task_snapshot one = {0};
    bugpack_status status =
        pid > 0 ? bp_task_open_below(root, pid, false, &process, NULL) : BUGPACK_ERR_NO_PROCESS;
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_process_snapshot(process, with_names, &one, NULL);
    if (status == BUGPACK_OK) {
        status = bp_process_note(process, root->fd, &one, ret_member, children);
    }
    if (status == BUGPACK_OK && !process->was_zombie) {
        *ret_snapshot = one;
        one = (bp_task_snapshot){0};
    }
    bp_task_snapshot_release(&one);
    bp_task_close(process);
    return status;
}

bugpack_status bp_process_read_member(const bp_task *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children) {
    const bp_proc_root *root = &first->root;
    bugpack_status status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        /* It may have ended while it was read, and be a zombie now. */
        status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    }
    return status;
}
