/*
 * The pulse on its thread: steady, stopped at once in both ways of waiting, slowed by its cost, and
 * silent once its process has ended. Run under ThreadSanitizer too.
 */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "platform/thread.h"
#include "probe/pulse.h"
#include "stress/sampler_child.h"
#include "support/check.h"

/* What the callback saw. Only the atomics are read while the pulse is alive. */
typedef struct seen {
    atomic_uint beat_count, failed_count;
    uint64_t last_ns;
    bool is_expensive;
    bool has_itself; /* the pulse is in its own snapshot, under its name */
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

/* Takes CPU time of the calling thread. */
static void burn(uint64_t cpu_ns) {
    struct timespec begin, now;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin) == 0);
    do {
        CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    } while ((uint64_t)(now.tv_sec - begin.tv_sec) * BP_NS_PER_SEC + (uint64_t)now.tv_nsec -
                 (uint64_t)begin.tv_nsec <
             cpu_ns);
}

static void see(void *context, bp_task_snapshot *snapshot, const bugpack_error *error) {
    seen *what = context;
    if (snapshot == NULL) {
        what->last_failure = error->status;
        atomic_fetch_add(&what->failed_count, 1);
        return;
    }
    CHECK(snapshot->taken_ns > what->last_ns);
    if (what->is_expensive) {
        burn(BP_NS_PER_MS);
    }
    what->last_ns = snapshot->taken_ns;
    what->has_itself = has_thread(snapshot, bp_thread_id(), "bugpack-pulse");
    bp_task_snapshot_release(&what->taken_over);
    what->taken_over = *snapshot;
    *snapshot = (bp_task_snapshot){0};
    atomic_fetch_add(&what->beat_count, 1);
}

static void wait_for(atomic_uint *count, unsigned least) {
    while (atomic_load(count) < least) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
}

static bp_pulse *start(pid_t pid, const bp_pulse_options *options, seen *what) {
    bp_task *task = NULL;
    bp_pulse *pulse = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bp_task_open(pid, &task, &error) == BUGPACK_OK);
    CHECK(bp_pulse_start(task, options, see, what, &pulse, &error) == BUGPACK_OK);
    bp_task_close(task); /* the pulse has its own */
    return pulse;
}

static void ticks_come_in_order_and_are_counted(void) {
    seen what = {0};
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = 5;
    options.cost_percent_max = 0;
    bp_pulse *pulse = start(0, &options, &what);
    wait_for(&what.beat_count, 20);
    bp_pulse_cost cost = bp_pulse_measure(pulse);
    CHECK(cost.tick_count >= 19 && cost.failed_count == 0);
    CHECK(cost.cpu_ns > 0 && cost.longest_ns > 0);
    bp_pulse_stop(pulse);
    CHECK(what.has_itself);
    unsigned after_stop = atomic_load(&what.beat_count);
    bp_clock_sleep_until(bp_clock_monotonic_ns() + 20 * BP_NS_PER_MS);
    CHECK(atomic_load(&what.beat_count) == after_stop);
    bp_task_snapshot_release(&what.taken_over);
}

/* Hangs until the test's time is over when the stop does not end the wait. */
static void a_stop_does_not_wait_for_the_next_tick(void) {
    seen what = {0};
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = UINT32_MAX;
    for (unsigned i = 0; i < 50; i++) {
        bp_pulse *pulse = start(0, &options, &what);
        if (i % 2 == 0) {
            wait_for(&what.beat_count, i + 1);
        }
        bp_pulse_stop(pulse);
        atomic_store(&what.beat_count, i + 1);
    }
    bp_task_snapshot_release(&what.taken_over);
}

/* The way to wait that answers a signal meanwhile. */
static atomic_uint signal_count;

static void wait_for_signal(void *context, uint64_t deadline_ns) {
    const sigset_t *set = context;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct timespec left = {.tv_sec = (time_t)(left_ns / BP_NS_PER_SEC),
                            .tv_nsec = (long)(left_ns % BP_NS_PER_SEC)};
    if (sigtimedwait(set, NULL, &left) == SIGIO) {
        atomic_fetch_add(&signal_count, 1);
    }
}

static void send_signal(void *context, pthread_t thread) {
    (void)context;
    CHECK(pthread_kill(thread, SIGIO) == 0);
}

static void an_owner_waits_in_its_own_way(void) {
    seen what = {0};
    sigset_t set;
    CHECK(sigemptyset(&set) == 0 && sigaddset(&set, SIGIO) == 0);
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = 5;
    options.cost_percent_max = 0;
    options.wait = wait_for_signal;
    options.wake = send_signal;
    options.wait_context = &set;
    bp_pulse *pulse = start(0, &options, &what);
    wait_for(&what.beat_count, 5);
    bp_pulse_stop(pulse);

    /* A stop that comes before, at or after the beginning of the wait ends it just as well. */
    options.interval_ms = UINT32_MAX;
    atomic_store(&signal_count, 0);
    for (unsigned i = 0; i < 50; i++) {
        bp_pulse_stop(start(0, &options, &what));
    }
    bp_task_snapshot_release(&what.taken_over);
}

/* A millisecond of CPU is one percent of a hundred: most slots of five are left out. */
static void an_expensive_pulse_slows_down(void) {
    seen what = {.is_expensive = true};
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = 5;
    bp_pulse *pulse = start(0, &options, &what);
    wait_for(&what.beat_count, 3);
    bp_pulse_cost cost = bp_pulse_measure(pulse);
    bp_pulse_stop(pulse);
    CHECK(cost.tick_count >= 2);
    CHECK(cost.cpu_ns >= 2 * BP_NS_PER_MS);
    CHECK(cost.missed_count >= 2 * 19);
    bp_task_snapshot_release(&what.taken_over);
}

static void nothing_comes_after_the_end_of_the_process(void) {
    seen what = {0};
    bp_pulse_options options = BP_PULSE_OPTIONS_INIT;
    options.interval_ms = 5;
    options.cost_percent_max = 0;
    pid_t pid = start_child();
    bp_pulse *pulse = start(pid, &options, &what);
    wait_for(&what.beat_count, 2);
    kill_child(pid, true);
    wait_for(&what.failed_count, 1);
    bp_clock_sleep_until(bp_clock_monotonic_ns() + 30 * BP_NS_PER_MS);
    bp_pulse_stop(pulse);
    CHECK(atomic_load(&what.failed_count) == 1);
    CHECK(what.last_failure == BUGPACK_ERR_NO_PROCESS);
    bp_task_snapshot_release(&what.taken_over);
}

int main(void) {
    ticks_come_in_order_and_are_counted();
    a_stop_does_not_wait_for_the_next_tick();
    an_owner_waits_in_its_own_way();
    an_expensive_pulse_slows_down();
    nothing_comes_after_the_end_of_the_process();
    return 0;
}
