#include "probe/thread_heap_snapshot.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/thread.h"
#include "probe/remote_memory.h"
#include "probe/thread_pointers.h"
#include "probe/thread_stop.h"

/* A walk that a changing list misled is begun again, which also finds new threads. */
enum { walk_max = 4 };

/* The limit for stopping all threads, however many there are. */
static const uint64_t stop_budget_ns = 2 * BP_NS_PER_SEC;

bugpack_status bp_heap_target_find(bp_heap_prober *prober, bp_heap_target *target,
                                   bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    int process_fd = bp_proc_open_at(AT_FDCWD, O_PATH | O_DIRECTORY, "/proc/%d", (int)target->pid);
    if (process_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot look at process %d", (int)target->pid);
    }
    if (target->found.failure == BP_HEAP_FAILURE_NONE) {
        /* Before its map is read, so that an exec in between is seen. */
        target->memory_fd = openat(process_fd, "mem", O_RDONLY | O_CLOEXEC);
        target->has_memory = target->memory_fd >= 0;
        status = bp_jemalloc_find(prober, process_fd, &target->found, error);
    }
    (void)close(process_fd);
    return status;
}

/* After an exec nothing of the old program can be read: that is end of file (mem_rw in
 * fs/proc/base.c). */
bool bp_heap_target_is_same(const bp_heap_target *target) {
    const bp_jemalloc_found *found = &target->found;
    char byte;
    return !target->has_memory || found->failure != BP_HEAP_FAILURE_NONE ||
           pread(target->memory_fd, &byte, 1,
                 (off_t)(found->jemalloc_base + found->jemalloc.code_address)) != 0;
}

void bp_heap_target_release(bp_heap_target *target) {
    if (target->has_memory) {
        (void)close(target->memory_fd);
    }
    free(target->found.path);
    target->has_memory = false;
    target->found = (bp_jemalloc_found){0};
}

struct reading {
    const bp_heap_target *target;
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
static void read_counters(const struct reading *reading, uint64_t pointer, uint64_t tid_address,
                          bp_thread_heap *thread) {
    const bp_known_object *jemalloc = &reading->target->found.jemalloc;
    uint64_t addresses[2];
    uint64_t counters[2] = {0, 0};
    int32_t tid = (int32_t)thread->tid;
    if (!bp_tls_counter_address(BP_TLS_OWN_ARCH, pointer, reading->slot, jemalloc->has_slot,
                                jemalloc->allocated_place, &addresses[0]) ||
        !bp_tls_counter_address(BP_TLS_OWN_ARCH, pointer, reading->slot, jemalloc->has_slot,
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
static bool read_by_list(struct reading *reading) {
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
            thread->is_measured ? NULL : bp_thread_pointers_find(pointers, count, thread->tid);
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
    struct reading *reading = argument;
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
        bp_heap_failure failure = bp_thread_stop_read_pointer(
            (pid_t)thread->tid, reading->target->options.stop_timeout_ms, &pointer, &failure_errno);
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

static bugpack_status read_all(struct reading *reading, bugpack_error *error) {
    const bp_heap_target *target = reading->target;
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
    if (is_complete || !target->options.allow_stop) {
        return BUGPACK_OK;
    }
    pthread_t thread;
    bugpack_status status = bp_thread_start(stop_and_read, reading, &thread, error);
    if (status == BUGPACK_OK) {
        (void)pthread_join(thread, NULL);
    }
    return status;
}

static int compare_threads(const void *a_thread, const void *b_thread) {
    const bp_thread_heap *a = a_thread;
    const bp_thread_heap *b = b_thread;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static int compare_counters(const void *a_counters, const void *b_counters) {
    const bp_thread_counters *a = a_counters;
    const bp_thread_counters *b = b_counters;
    return a->tid < b->tid ? -1 : a->tid > b->tid;
}

static bugpack_status take_threads(const bp_task_snapshot *before,
                                   bp_thread_heap_snapshot *snapshot, bugpack_error *error) {
    snapshot->threads = calloc(before->thread_count + 1, sizeof *snapshot->threads);
    if (snapshot->threads == NULL) {
        return bp_fail_memory(error, "list the threads of a process");
    }
    for (size_t i = 0; i < before->thread_count; i++) {
        const bp_thread_counters *from = &before->threads[i];
        bp_thread_heap *thread = &snapshot->threads[i];
        thread->tid = from->tid;
        thread->birth = from->birth;
        memcpy(thread->name, from->name, sizeof thread->name);
    }
    snapshot->thread_count = before->thread_count;
    qsort(snapshot->threads, snapshot->thread_count, sizeof *snapshot->threads, compare_threads);
    return BUGPACK_OK;
}

/* Keeps the threads that still run, unless their id was reused. The births of our own threads are
 * not known when no names were read. */
static void drop_vanished(bp_task_snapshot *after, bp_thread_heap_snapshot *snapshot) {
    size_t kept = 0;
    qsort(after->threads, after->thread_count, sizeof *after->threads, compare_counters);
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        bp_thread_counters key = {.tid = snapshot->threads[i].tid};
        const bp_thread_counters *still =
            bsearch(&key, after->threads, after->thread_count, sizeof key, compare_counters);
        const bp_thread_heap *thread = &snapshot->threads[i];
        if (still != NULL &&
            (still->birth == thread->birth || still->birth == 0 || thread->birth == 0)) {
            snapshot->measured_count += thread->is_measured;
            snapshot->threads[kept++] = *thread;
        }
    }
    snapshot->vanished_count = snapshot->thread_count - kept;
    snapshot->thread_count = kept;
}

bugpack_status bp_heap_snapshot_take(const bp_heap_target *target,
                                     bp_thread_heap_snapshot *ret_snapshot, bugpack_error *error) {
    struct reading reading = {.target = target};
    bp_task_snapshot before = {0};
    bp_task_snapshot after = {0};
    bugpack_status status = bp_task_snapshot_take(target->task, true, &before, error);
    if (status == BUGPACK_OK) {
        status = take_threads(&before, &reading.snapshot, error);
    }
    if (status == BUGPACK_OK) {
        bp_instant now = bp_clock_now();
        reading.snapshot.taken_ns = now.monotonic_ns;
        reading.snapshot.taken_wall_ns = now.wall_ns;
        status = read_all(&reading, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_task_snapshot_take(target->task, false, &after, error);
    }
    if (status == BUGPACK_OK && !bp_heap_target_is_same(target)) {
        status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d runs another program by now",
                         (int)target->pid);
    }
    if (status == BUGPACK_OK) {
        drop_vanished(&after, &reading.snapshot);
        *ret_snapshot = reading.snapshot;
        reading.snapshot.threads = NULL;
    }
    free(reading.snapshot.threads);
    bp_task_snapshot_release(&before);
    bp_task_snapshot_release(&after);
    return status;
}
