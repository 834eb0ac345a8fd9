#include "heap/thread_heap.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "heap/jemalloc_find.h"
#include "model/metrics.h"
#include "platform/linux/files.h"
#include "platform/task.h"
#include "platform/thread.h"
#include "process/remote_memory.h"
#include "stacks/thread_stop.h"

static const char *what_failed(bp_heap_failure failure) {
    static const char *const sentences[BP_HEAP_FAILURE_COUNT] = {
        [BP_HEAP_FAILURE_SELF] = "bugpack does not look into its own process",
        [BP_HEAP_FAILURE_PID_MISSING] = "there is no such process, or it has ended",
        [BP_HEAP_FAILURE_READLINK] = "the executable of the process cannot be found out",
        [BP_HEAP_FAILURE_MAPS_READ] = "the memory map of the process cannot be read",
        [BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND] = "the process has no jemalloc that could be found",
        [BP_HEAP_FAILURE_THREAD_POINTER] =
            "the C library of the process does not tell where its threads keep their data",
        [BP_HEAP_FAILURE_PTRACE_SEIZE] =
            "the threads of the process cannot be traced, as while a debugger has them",
        [BP_HEAP_FAILURE_PTRACE_INTERRUPT] =
            "the threads of the process did not stop when asked to",
        [BP_HEAP_FAILURE_WAITPID] = "the threads of the process did not stop when asked to",
        [BP_HEAP_FAILURE_GET_REGSET] = "the registers of the threads cannot be read",
        [BP_HEAP_FAILURE_VM_READV] = "the memory of the process cannot be read",
        [BP_HEAP_FAILURE_TLS_ARITHMETIC] =
            "the counters would lie where no memory of a thread can be",
        [BP_HEAP_FAILURE_UNSUPPORTED] = "this system has no way to look into another process"};
    const char *sentence = failure < BP_HEAP_FAILURE_COUNT ? sentences[failure] : NULL;
    return sentence != NULL ? sentence : "the counters cannot be read";
}

/* By Yama's scope (ptrace(2), "/proc/sys/kernel/yama/ptrace_scope"). */
static const char *what_to_do(int yama_scope) {
    static const char *const scopes[] = {
        BP_ADVICE_DENIED,
        "Yama allows this for children only (kernel.yama.ptrace_scope is 1): run as root, give "
        "bugpack CAP_SYS_PTRACE, or set it to 0",
        "Yama allows this for administrators only (kernel.yama.ptrace_scope is 2): run as root or "
        "give bugpack CAP_SYS_PTRACE",
        "Yama forbids this to everybody until the next boot (kernel.yama.ptrace_scope is 3)"};
    return scopes[yama_scope >= 1 && yama_scope <= 3 ? yama_scope : 0];
}

void bp_heap_advice(bp_heap_failure failure, int system_errno, int yama_scope, char *out,
                    size_t out_bytes) {
    if (failure == BP_HEAP_FAILURE_READLINK && system_errno == ENOENT) {
        (void)snprintf(
            out, out_bytes,
            "the process has no executable: it is a kernel thread, or its first thread has "
            "ended");
    } else if (system_errno == EPERM || system_errno == EACCES) {
        (void)snprintf(out, out_bytes, "%s: %s; %s", what_failed(failure), strerror(system_errno),
                       what_to_do(yama_scope));
    } else if (system_errno != 0) {
        (void)snprintf(out, out_bytes, "%s: %s", what_failed(failure), strerror(system_errno));
    } else {
        (void)snprintf(out, out_bytes, "%s", what_failed(failure));
    }
}

/* -1 where there is none. */
static int read_yama_scope(void) {
    char digit;
    ssize_t count = bp_proc_read_small(AT_FDCWD, "/proc/sys/kernel/yama/ptrace_scope", &digit, 1);
    return count == 1 && digit >= '0' && digit <= '9' ? digit - '0' : -1;
}

/* A walk that a changing list misled is begun again, which also finds new threads. */
enum { walk_max = 4 };

/* The limits for stopping one thread, and all, however many there are. */
static const uint32_t stop_timeout_ms = 200;
static const uint64_t stop_budget_ns = 2 * BP_NS_PER_SEC;

/* A process of which the counters are read. */
struct target {
    pid_t pid;
    bp_heap_prober *prober;
    bp_task *task;
    bp_jemalloc_found found; /* with its failure, threads are listed and not measured */
    int memory_fd; /* /proc/<pid>/mem, which stays with the program that it was opened on; or -1 */
};

/* Finds the jemalloc of the process, unless `found` has a failure already. */
static bugpack_status find_jemalloc(struct target *target, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    int process_fd = bp_proc_open_at(AT_FDCWD, O_PATH | O_DIRECTORY, "/proc/%d", (int)target->pid);
    if (process_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot look at process %d", (int)target->pid);
    }
    if (target->found.failure == BP_HEAP_FAILURE_NONE) {
        /* Before its map is read, so that an exec in between is seen. */
        target->memory_fd = openat(process_fd, "mem", O_RDONLY | O_CLOEXEC);
        status = bp_jemalloc_find(target->prober, process_fd, &target->found, error);
    }
    (void)close(process_fd);
    return status;
}

/* True if the process still runs the program in which the jemalloc was found, or that is not known:
 * an exec leaves it its pid and start time, but of the old program nothing can be read. That is end
 * of file (mem_rw in fs/proc/base.c). */
static bool is_same_program(const struct target *target) {
    const bp_jemalloc_found *found = &target->found;
    char byte;
    return target->memory_fd < 0 || found->failure != BP_HEAP_FAILURE_NONE ||
           pread(target->memory_fd, &byte, 1,
                 (off_t)(found->jemalloc_base + found->jemalloc.code_address)) != 0;
}

struct counting {
    const struct target *target;
    bp_thread_heap_snapshot snapshot;
    int64_t slot; /* what the loader wrote for this process */
};

static void fail_thread(bp_thread_heap *thread, bp_heap_failure failure, int system_errno) {
    thread->failure = failure;
    thread->system_errno = system_errno;
}

/*
 * Reads both counters by the thread pointer. With `tid_address`, the thread's id is read in the
 * same call: a descriptor that was given to another thread meanwhile does not count.
 */
static void read_counters(const struct counting *reading, uint64_t pointer, uint64_t tid_address,
                          bp_thread_heap *thread) {
    const bp_known_object *jemalloc = &reading->target->found.jemalloc;
    uint64_t addresses[2];
    uint64_t counters[2] = {0, 0};
    int32_t tid = (int32_t)thread->tid;
    if (!bp_tls_counter_address(BP_ELF_OWN_MACHINE, pointer, reading->slot, jemalloc->has_slot,
                                jemalloc->allocated_place, &addresses[0]) ||
        !bp_tls_counter_address(BP_ELF_OWN_MACHINE, pointer, reading->slot, jemalloc->has_slot,
                                jemalloc->deallocated_place, &addresses[1])) {
        fail_thread(thread, BP_HEAP_FAILURE_TLS_ARITHMETIC, 0);
        return;
    }
    /* Freed bytes first: otherwise a block that is allocated and freed meanwhile could count as
     * freed only. */
    const bp_remote_piece pieces[] = {{addresses[1], &counters[1], sizeof counters[1]},
                                      {addresses[0], &counters[0], sizeof counters[0]},
                                      {tid_address, &tid, sizeof tid}};
    int result = bp_remote_read(reading->target->pid, pieces, tid_address != 0 ? 3 : 2);
    if (result != 0 || tid != (int32_t)thread->tid) {
        fail_thread(thread, result != 0 ? BP_HEAP_FAILURE_VM_READV : BP_HEAP_FAILURE_THREAD_POINTER,
                    result);
        return;
    }
    thread->allocated_bytes = counters[0];
    thread->deallocated_bytes = counters[1];
    thread->is_measured = true;
    fail_thread(thread, BP_HEAP_FAILURE_NONE, 0);
}

/* One walk of the list, for the threads that have no counters yet. True when all have some. */
static bool read_by_list(struct counting *reading) {
    const bp_jemalloc_found *found = &reading->target->found;
    bp_thread_heap_snapshot *snapshot = &reading->snapshot;
    bp_thread_pointer *pointers = NULL;
    size_t count = 0;
    size_t missing_count = 0;
    int result = bp_thread_pointers_list(reading->target->pid, &found->libc, found->libc_base,
                                         snapshot->thread_count * 4 + 1024, &pointers, &count);
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        bp_thread_heap *thread = &snapshot->threads[i];
        const bp_thread_pointer *pointer =
            thread->is_measured ? NULL
                                : bp_array_find_u64(thread->tid, pointers, count, sizeof *pointers);
        if (pointer != NULL) {
            read_counters(reading, pointer->pointer, pointer->tid_address, thread);
        } else if (!thread->is_measured && result != 0) {
            fail_thread(thread, BP_HEAP_FAILURE_VM_READV, result);
        }
        missing_count += !thread->is_measured;
    }
    free(pointers);
    return missing_count == 0;
}

/*
 * Stops one thread after the other. Runs on a thread of its own: when it ends, the kernel releases
 * every thread that could not be detached.
 */
static void *stop_and_read(void *argument) {
    struct counting *reading = argument;
    bp_thread_heap_snapshot *snapshot = &reading->snapshot;
    uint64_t deadline_ns = bp_clock_monotonic_ns() + stop_budget_ns;
    bp_thread_set_name("bugpack-stop");
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        bp_thread_heap *thread = &snapshot->threads[i];
        uint64_t pointer = 0;
        int failure_errno = 0;
        if (thread->failure != BP_HEAP_FAILURE_THREAD_POINTER) {
            continue;
        }
        if (bp_clock_monotonic_ns() >= deadline_ns) {
            fail_thread(thread, BP_HEAP_FAILURE_WAITPID, ETIMEDOUT);
            continue;
        }
        bp_heap_failure failure = bp_thread_stop_read_pointer((pid_t)thread->tid, stop_timeout_ms,
                                                              &pointer, &failure_errno);
        if (failure == BP_HEAP_FAILURE_NONE) {
            snapshot->stopped_count++;
            read_counters(reading, pointer, 0, thread);
        } else {
            fail_thread(thread, failure, failure_errno);
        }
    }
    return NULL;
}

static void fail_all(bp_thread_heap_snapshot *snapshot, bp_heap_failure failure, int system_errno) {
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        fail_thread(&snapshot->threads[i], failure, system_errno);
    }
}

static bugpack_status read_all(struct counting *reading, bugpack_error *error) {
    const struct target *target = reading->target;
    const bp_jemalloc_found *found = &target->found;
    if (found->failure != BP_HEAP_FAILURE_NONE) {
        fail_all(&reading->snapshot, found->failure, found->system_errno);
        return BUGPACK_OK;
    }
    if (found->jemalloc.has_slot) {
        int result = bp_remote_read_one(target->pid, found->jemalloc_base + found->jemalloc.slot,
                                        &reading->slot, sizeof reading->slot);
        if (result != 0) {
            fail_all(&reading->snapshot, BP_HEAP_FAILURE_VM_READV, result);
            return BUGPACK_OK;
        }
    }
    fail_all(&reading->snapshot, BP_HEAP_FAILURE_THREAD_POINTER, 0);
    bool is_complete = false;
    for (int i = 0; found->has_libc && i < walk_max && !is_complete; i++) {
        is_complete = read_by_list(reading);
    }
    if (is_complete || !target->prober->options.allow_stop) {
        return BUGPACK_OK;
    }
    pthread_t thread;
    bugpack_status status = bp_thread_start(stop_and_read, reading, &thread, error);
    if (status == BUGPACK_OK) {
        (void)pthread_join(thread, NULL);
    }
    return status;
}

/* Keeps the threads that still run, unless their id was reused. The births of our own threads are
 * not known when no names were read. */
static void drop_vanished(bp_task_snapshot *after, bp_thread_heap_snapshot *snapshot) {
    size_t kept = 0;
    bp_metrics_sort_threads(after);
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        const bp_thread_heap *thread = &snapshot->threads[i];
        const bp_thread_counters *still = bp_array_find_u64(
            thread->tid, after->threads, after->thread_count, sizeof *after->threads);
        if (still != NULL &&
            (still->birth == thread->birth || still->birth == 0 || thread->birth == 0)) {
            snapshot->measured_count += thread->is_measured;
            snapshot->threads[kept++] = *thread;
        }
    }
    snapshot->vanished_count += snapshot->thread_count - kept;
    snapshot->thread_count = kept;
}

/* Lists the threads and reads the counters of each. A reused pid and an exec are noticed, as
 * NO_PROCESS; a thread that was not there before and after is left out. */
static bugpack_status take_snapshot(const struct target *target,
                                    bp_thread_heap_snapshot *ret_snapshot, bugpack_error *error) {
    struct counting reading = {.target = target};
    bp_task_snapshot before = {0};
    bp_task_snapshot after = {0};
    bugpack_status status = bp_task_snapshot_take(target->task, true, &before, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    reading.snapshot.threads = calloc(before.thread_count + 1, sizeof *reading.snapshot.threads);
    if (reading.snapshot.threads == NULL) {
        status = bp_fail_memory(error, "list the threads of a process");
        goto out;
    }
    bp_metrics_sort_threads(&before);
    for (size_t i = 0; i < before.thread_count; i++) {
        const bp_thread_counters *from = &before.threads[i];
        reading.snapshot.threads[i] = (bp_thread_heap){.tid = from->tid, .birth = from->birth};
        memcpy(reading.snapshot.threads[i].name, from->name, sizeof from->name);
    }
    reading.snapshot.thread_count = before.thread_count;
    reading.snapshot.vanished_count = before.vanished_count;
    bp_instant now = bp_clock_now();
    reading.snapshot.taken_ns = now.monotonic_ns;
    reading.snapshot.taken_wall_ns = now.wall_ns;
    status = read_all(&reading, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = bp_task_snapshot_take(target->task, false, &after, error);
    if (status == BUGPACK_OK && !is_same_program(target)) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d runs another program by now",
                         (int)target->pid);
    }
    if (status == BUGPACK_OK) {
        drop_vanished(&after, &reading.snapshot);
        *ret_snapshot = reading.snapshot;
        reading.snapshot.threads = NULL;
    }
out:
    free(reading.snapshot.threads);
    bp_task_snapshot_release(&before);
    bp_task_snapshot_release(&after);
    return status;
}

/* The number of times that a process may exec before a probe gives up. */
static const unsigned exec_max = 3;

static void fail_reading(bp_thread_heap_reading *reading, bp_heap_failure failure, int system_errno,
                         const char *own_reason) {
    char advice[sizeof reading->reason];
    bugpack_error sentence = BUGPACK_ERROR_INIT;
    bp_heap_advice(failure, system_errno, read_yama_scope(), advice, sizeof advice);
    if (failure == BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND && own_reason[0] != '\0') {
        (void)bp_fail(&sentence, BUGPACK_ERR_UNSUPPORTED, "%s (%s)", advice, own_reason);
    } else {
        (void)bp_fail(&sentence, BUGPACK_ERR_UNSUPPORTED, "%s",
                      own_reason[0] != '\0' ? own_reason : advice);
    }
    reading->failure = failure;
    reading->system_errno = system_errno;
    (void)snprintf(reading->reason, sizeof reading->reason, "%s", sentence.message);
}

/* Waits for the next snapshot. False when it was interrupted through `stop_fd`. */
static bool wait_until(uint64_t deadline_ns, int stop_fd) {
    for (;;) {
        struct pollfd waited = {stop_fd, POLLIN, 0}; /* poll passes over -1 */
        if (poll(&waited, 1, bp_clock_poll_ms(deadline_ns)) > 0) {
            return false;
        }
        if (bp_clock_monotonic_ns() >= deadline_ns) {
            return true;
        }
    }
}

/* Snapshots before the process ended are a result, if there are any. */
static bugpack_status take_all(const struct target *target, const bp_heap_plan *plan,
                               bp_thread_heap_reading *reading, bugpack_error *error) {
    uint32_t wanted = target->found.failure == BP_HEAP_FAILURE_NONE ? plan->snapshot_count : 1;
    uint64_t began_ns = bp_clock_monotonic_ns();
    reading->snapshots = calloc(wanted, sizeof *reading->snapshots);
    if (reading->snapshots == NULL) {
        return bp_fail_memory(error, "read the counters of a process");
    }
    for (uint32_t i = 0; i < wanted; i++) {
        if (i > 0 &&
            !wait_until(began_ns + (uint64_t)i * plan->interval_ms * BP_NS_PER_MS, plan->stop_fd)) {
            reading->is_interrupted = true;
            return BUGPACK_OK;
        }
        bugpack_status status = take_snapshot(target, &reading->snapshots[i], error);
        if (status == BUGPACK_ERR_NO_PROCESS && i > 0) {
            reading->is_interrupted = true;
            return BUGPACK_OK;
        }
        if (status != BUGPACK_OK) {
            return status;
        }
        reading->snapshot_count++;
    }
    return BUGPACK_OK;
}

/* The task pins the process, whose identity each snapshot checks once more at its end. A process
 * that ran exec meanwhile is probed again. */
static bugpack_status probe_task(struct target *target, const bp_heap_plan *plan,
                                 bp_thread_heap_reading *reading, bugpack_error *error) {
    for (unsigned i = 0;; i++) {
        bugpack_status status = find_jemalloc(target, error);
        if (status == BUGPACK_OK) {
            status = take_all(target, plan, reading, error);
        }
        if (status == BUGPACK_OK) {
            /* A process without a measured thread has the failure of its first thread. */
            const bp_jemalloc_found *found = &target->found;
            const bp_thread_heap_snapshot *last = &reading->snapshots[reading->snapshot_count - 1];
            if (found->failure != BP_HEAP_FAILURE_NONE) {
                fail_reading(reading, found->failure, found->system_errno, found->reason);
            } else if (last->measured_count == 0 && last->thread_count > 0) {
                fail_reading(reading, last->threads[0].failure, last->threads[0].system_errno, "");
            }
            const bp_known_object *jemalloc = &target->found.jemalloc;
            reading->object = target->found.path;
            target->found.path = NULL;
            reading->is_shared = jemalloc->has_slot;
            reading->is_calibrated = jemalloc->is_calibrated;
            memcpy(reading->build_id, jemalloc->build_id, sizeof reading->build_id);
        }
        bool is_again =
            status == BUGPACK_ERR_NO_PROCESS && i < exec_max && !is_same_program(target);
        bp_file_close(target->memory_fd);
        free(target->found.path);
        target->memory_fd = -1;
        target->found = (bp_jemalloc_found){0};
        if (!is_again) {
            return status;
        }
        free(reading->snapshots);
        reading->snapshots = NULL;
    }
}

bugpack_status bp_heap_probe(bp_heap_prober *prober, pid_t pid, const bp_heap_plan *plan,
                             bp_thread_heap_reading *ret_reading, bugpack_error *error) {
    bp_thread_heap_reading reading = {.pid = (uint64_t)(pid > 0 ? pid : getpid())};
    struct target target = {.pid = (pid_t)reading.pid, .prober = prober, .memory_fd = -1};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (target.pid == getpid()) {
        target.found.failure = BP_HEAP_FAILURE_SELF;
    }
    bugpack_status status = bp_task_open(target.pid, false, &target.task, &detail);
    if (status == BUGPACK_OK) {
        bp_task_name(target.task, reading.process_name, sizeof reading.process_name);
        status = probe_task(&target, plan, &reading, &detail);
    }
    bp_task_close(target.task);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        fail_reading(&reading, BP_HEAP_FAILURE_PID_MISSING, 0, detail.message);
    } else if (status == BUGPACK_ERR_DENIED) {
        fail_reading(&reading, BP_HEAP_FAILURE_READLINK, EACCES, detail.message);
    } else if (status == BUGPACK_ERR_UNSUPPORTED) {
        fail_reading(&reading, BP_HEAP_FAILURE_UNSUPPORTED, 0, detail.message);
    } else if (status != BUGPACK_OK) {
        bp_thread_heap_reading_release(&reading);
        if (error != NULL) {
            *error = detail;
        }
        return status;
    }
    *ret_reading = reading;
    return BUGPACK_OK;
}
