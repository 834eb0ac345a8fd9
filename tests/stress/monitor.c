/*
 * The monitor and the ticker on its thread: steady, stopped at once, silent once its process has
 * ended; tasks that are woken, added and removed while it runs. Run under ThreadSanitizer too.
 */
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "platform/thread.h"
#include "process/ticker.h"
#include "recorder/monitor.h"
#include "stress/sampler_child.h"
#include "support/check.h"

/* What the callback saw. Only the atomics are read while the monitor runs. */
typedef struct seen {
    atomic_uint tick_count, failed_count;
    uint64_t last_ns;
    bool has_itself; /* the monitor is in its own snapshot, under its name */
    bugpack_status last_failure;
    bp_task_snapshot taken_over;
} seen;

static bool has_thread(const bp_task_snapshot *snapshot, uint64_t tid, const char *name) {
    for (size_t i = 0; i < snapshot->thread_count; i++) {
        if (snapshot->threads[i].tid == tid) {
            return strcmp(snapshot->threads[i].name, name) == 0;
        }
    }
    return false;
}

static void see(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    seen *what = context;
    if (snapshot == NULL) {
        what->last_failure = error->status;
        atomic_fetch_add(&what->failed_count, 1);
        return;
    }
    CHECK(snapshot->taken_ns > what->last_ns);
    what->last_ns = snapshot->taken_ns;
    what->has_itself = has_thread(snapshot, bp_thread_id(), "bugpack-monitor");
    bp_task_snapshot_release(&what->taken_over);
    what->taken_over = *snapshot;
    *snapshot = (bp_task_snapshot){0};
    atomic_fetch_add(&what->tick_count, 1);
}

static void wait_for(atomic_uint *count_of, unsigned least) {
    for (unsigned i = 0; atomic_load(count_of) < least; i++) {
        if (i > 1000) {
            bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
        }
    }
}

/* A monitor with a ticker. */
typedef struct sampling {
    bp_monitor *monitor;
    bp_ticker *ticker;
} sampling;

static sampling start(pid_t pid, uint32_t interval_ms, uint32_t cost_percent_max, seen *what) {
    sampling started = {NULL, NULL};
    bp_task *task = NULL;
    CHECK(bp_task_open(pid, false, &task, NULL) == BUGPACK_OK);
    CHECK(bp_ticker_new(task, interval_ms, cost_percent_max, see, what, &started.ticker, NULL) ==
          BUGPACK_OK);
    bp_task_close(task); /* the ticker has its own */
    CHECK(bp_monitor_new(&started.monitor, NULL) == BUGPACK_OK);
    bp_monitor_add(started.monitor, bp_ticker_tick, started.ticker);
    return started;
}

static void stop(sampling *started) {
    bp_monitor_remove(started->monitor, bp_ticker_tick);
    bp_ticker_free(started->ticker);
    bp_monitor_free(started->monitor);
}

static void ticks_come_in_order_and_end_with_the_removal(void) {
    seen what = {0};
    sampling started = start(0, 5, 0, &what);
    wait_for(&what.tick_count, 20);
    bp_monitor_remove(started.monitor, bp_ticker_tick);
    unsigned after_removal = atomic_load(&what.tick_count);
    CHECK(what.has_itself);
    CHECK(atomic_load(&what.failed_count) == 0);
    bp_monitor_wake(started.monitor);
    stop(&started);
    CHECK(atomic_load(&what.tick_count) == after_removal);
    bp_task_snapshot_release(&what.taken_over);
}

/* Hangs until the test's time is over when the stop does not end the wait. */
static void a_stop_does_not_wait_for_the_next_tick(void) {
    seen what = {0};
    for (unsigned i = 0; i < 50; i++) {
        sampling started = start(0, UINT32_MAX, 1, &what);
        if (i % 2 == 0) {
            wait_for(&what.tick_count, i + 1);
        }
        stop(&started);
        atomic_store(&what.tick_count, i + 1);
    }
    bp_task_snapshot_release(&what.taken_over);
}

static void nothing_comes_after_the_end_of_the_process(void) {
    seen what = {0};
    pid_t pid = start_child();
    sampling started = start(pid, 5, 0, &what);
    wait_for(&what.tick_count, 2);
    kill_child(pid, true);
    wait_for(&what.failed_count, 1);
    for (unsigned i = 0; i < 50; i++) {
        bp_monitor_wake(started.monitor);
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    stop(&started);
    CHECK(atomic_load(&what.failed_count) == 1);
    CHECK(what.last_failure == BUGPACK_ERR_NO_PROCESS);
    bp_task_snapshot_release(&what.taken_over);
}

static uint64_t count(void *counter, uint64_t now_ns) {
    (void)now_ns;
    atomic_fetch_add((atomic_uint *)counter, 1);
    return UINT64_MAX;
}

/* Each wake is answered by a run that begins after it, also one that comes while the task runs. */
static void a_wake_is_never_lost(void) {
    bp_monitor *monitor = NULL;
    atomic_uint counter = 0;
    CHECK(bp_monitor_new(&monitor, NULL) == BUGPACK_OK);
    bp_monitor_add(monitor, count, &counter);
    for (unsigned i = 0; i < 20000; i++) {
        unsigned before = atomic_load(&counter);
        bp_monitor_wake(monitor);
        wait_for(&counter, before + 1);
    }
    bp_monitor_remove(monitor, count);
    bp_monitor_remove(monitor, count);
    bp_monitor_free(monitor);
}

int main(void) {
    ticks_come_in_order_and_end_with_the_removal();
    a_stop_does_not_wait_for_the_next_tick();
    nothing_comes_after_the_end_of_the_process();
    a_wake_is_never_lost();
    return 0;
}
