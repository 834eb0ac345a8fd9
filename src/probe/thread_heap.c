#include "probe/thread_heap.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "probe/heap_advice.h"
#include "probe/thread_heap_snapshot.h"

static const uint32_t snapshot_max = 100000;

/* How often a process may exec under a probe before that is given up. */
static const unsigned exec_max = 3;

static void fail_reading(bp_thread_heap_reading *reading, bp_heap_failure failure, int system_errno,
                         const char *own_reason) {
    char advice[sizeof reading->reason];
    bugpack_error sentence = BUGPACK_ERROR_INIT;
    bp_heap_advice(failure, system_errno, bp_yama_scope_read(), advice, sizeof advice);
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

/* A process without a measured thread has the failure of its first thread. */
static void judge(const bp_heap_target *target, bp_thread_heap_reading *reading) {
    const bp_jemalloc_found *found = &target->found;
    const bp_thread_heap_snapshot *last = &reading->snapshots[reading->snapshot_count - 1];
    if (found->failure != BP_HEAP_FAILURE_NONE) {
        fail_reading(reading, found->failure, found->system_errno, found->reason);
    } else if (last->measured_count == 0 && last->thread_count > 0) {
        fail_reading(reading, last->threads[0].failure, last->threads[0].system_errno, "");
    }
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
static bugpack_status take_all(const bp_heap_target *target, const bp_heap_plan *plan,
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
        bugpack_status status = bp_heap_snapshot_take(target, &reading->snapshots[i], error);
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

static void describe(bp_heap_target *target, bp_thread_heap_reading *reading) {
    const bp_known_object *jemalloc = &target->found.jemalloc;
    reading->object = target->found.path;
    target->found.path = NULL;
    reading->is_shared = jemalloc->has_slot;
    reading->is_calibrated = jemalloc->is_calibrated;
    memcpy(reading->build_id, jemalloc->build_id, sizeof reading->build_id);
}

/* The task pins the process, whose identity each snapshot checks once more at its end. */
static bugpack_status probe_task(bp_heap_prober *prober, bp_heap_target *target,
                                 const bp_heap_plan *plan, bp_thread_heap_reading *reading,
                                 bugpack_error *error) {
    bugpack_status status = bp_heap_target_find(prober, target, error);
    if (status == BUGPACK_OK) {
        status = take_all(target, plan, reading, error);
    }
    if (status == BUGPACK_OK) {
        judge(target, reading);
        describe(target, reading);
    }
    return status;
}

/* A process that ran exec meanwhile is probed again. */
static bugpack_status probe_programs(bp_heap_prober *prober, bp_heap_target *target,
                                     const bp_heap_plan *plan, bp_thread_heap_reading *reading,
                                     bugpack_error *error) {
    for (unsigned i = 0;; i++) {
        bugpack_status status = probe_task(prober, target, plan, reading, error);
        bool is_again =
            status == BUGPACK_ERR_NO_PROCESS && i < exec_max && !bp_heap_target_is_same(target);
        bp_heap_target_release(target);
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
    bp_heap_target target = {.pid = (pid_t)reading.pid,
                             .options = *bp_heap_prober_settings(prober)};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (plan->snapshot_count == 0 || plan->snapshot_count > snapshot_max) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "from 1 to %u snapshots can be taken",
                       (unsigned)snapshot_max);
    }
    if (target.pid == getpid()) {
        target.found.failure = BP_HEAP_FAILURE_SELF;
    }
    bugpack_status status = bp_task_open(target.pid, &target.task, &detail);
    if (status == BUGPACK_OK) {
        bp_task_name(target.task, reading.process_name, sizeof reading.process_name);
        status = probe_programs(prober, &target, plan, &reading, &detail);
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
