/*
 * The kernel writes samples into rings; a thread reads them now and then, so that what is kept has
 * a bound however long the window is.
 */
#include "profile/profile.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "platform/linux/perf_events.h"
#include "platform/thread.h"
#include "profile/profile_fold.h"
#include "profile/profile_samples.h"

/* The default of perf_event_mlock_kb for each processor beside its page: 62 samples. */
static const size_t ring_bytes = (size_t)512 << 10;

/* Not 100: a program that does something every 10 ms would always be met at the same place. */
static const uint64_t usual_rate_hz = 99;

/* A long window has no more of them on a processor than this, so that they can be kept. */
static const uint64_t sample_count_max = 1000;

/* The shares of the time to end within which samples are unwound, and names sought. */
static const uint64_t unwinding_share_percent = 40, symbols_share_percent = 60;

static const uint64_t shortest_nap_ns = 10 * BP_NS_PER_MS;

struct bp_profiler {
    atomic_uint references; /* of the caller and of the thread */
    bp_profile_plan plan;
    atomic_bool is_abandoned;
    bp_lock lock; /* of what follows */
    pthread_cond_t changed;
    pthread_t thread;
    bool is_ending, is_done;
    uint64_t ending_ns; /* since when */

    /* The thread's until it is done. */
    bp_perf_events events;
    bp_profile_fold fold;
    bp_profile profile;
    bugpack_status status;
    bugpack_error error;
    unsigned char record[BP_PERF_RECORD_BYTES];
};

static void drop(bp_profiler *profiler) {
    if (atomic_fetch_sub(&profiler->references, 1) == 1) {
        bp_profile_release(&profiler->profile);
        bp_profile_samples_free(profiler->plan.samples);
        (void)pthread_cond_destroy(&profiler->changed);
        bp_lock_destroy(&profiler->lock);
        free(profiler);
    }
}

static void drain(bp_profiler *profiler) {
    const bp_perf_registers *set = bp_perf_registers_here();
    for (size_t ring = 0; ring < profiler->events.ring_count; ring++) {
        bp_perf_cursor cursor = bp_perf_events_read(&profiler->events, ring);
        bp_perf_record record;
        size_t byte_count;
        while ((byte_count = bp_perf_next(&cursor, profiler->record)) > 0) {
            if (bp_perf_parse(profiler->record, byte_count, set, &record)) {
                bp_profile_fold_take(&profiler->fold, &record);
            }
        }
        bp_perf_events_release(&profiler->events, ring, cursor.is_damaged ? cursor.end : cursor.at);
    }
}

/* False once the window is to end. */
static bool nap(bp_profiler *profiler, uint64_t nap_ns) {
    uint64_t until_ns = bp_clock_monotonic_ns() + nap_ns;
    bp_lock_acquire(&profiler->lock);
    while (!profiler->is_ending &&
           bp_lock_wait_until(&profiler->lock, &profiler->changed, until_ns)) {}
    bool is_ending = profiler->is_ending;
    bp_lock_release(&profiler->lock);
    return !is_ending;
}

/* So often that a ring is at most a third full. */
static uint64_t nap_of(const bp_profiler *profiler) {
    uint64_t sample_count = profiler->events.least_ring_bytes / BP_PERF_SAMPLE_BYTES;
    uint64_t nap_ns = sample_count * BP_NS_PER_SEC / profiler->profile.facts.rate_hz / 3;
    return nap_ns > shortest_nap_ns ? nap_ns : shortest_nap_ns;
}

static bugpack_status sample(bp_profiler *profiler) {
    bp_profile_facts *facts = &profiler->profile.facts;
    const bp_perf_plan plan = {
        .pid = profiler->plan.pid, .rate_hz = facts->rate_hz, .ring_bytes = ring_bytes};
    bugpack_status status = bp_perf_events_open(&profiler->events, &plan, &profiler->error);
    uint64_t began_ns = bp_clock_monotonic_ns();
    facts->excludes_kernel = profiler->events.excludes_kernel;
    if (status == BUGPACK_OK) {
        uint64_t nap_ns = nap_of(profiler);
        while (nap(profiler, nap_ns)) {
            drain(profiler);
        }
        bp_perf_events_pause(&profiler->events, true);
        facts->window_ns = bp_clock_monotonic_ns() - began_ns;
        profiler->fold.deadline_ns =
            profiler->ending_ns + profiler->plan.timeout_ns * unwinding_share_percent / 100;
        profiler->fold.unwinder.deadline_ns = profiler->fold.deadline_ns;
        drain(profiler);
    }
    bp_perf_events_close(&profiler->events);
    return status;
}

static bugpack_status sample_and_fold(bp_profiler *profiler) {
    bugpack_error fold_error = BUGPACK_ERROR_INIT;
    bugpack_status status = sample(profiler);
    uint64_t until_ns =
        profiler->ending_ns + profiler->plan.timeout_ns * symbols_share_percent / 100;
    bugpack_status fold_status = bp_profile_fold_end(&profiler->fold, until_ns, &fold_error);
    if (status == BUGPACK_OK && fold_status != BUGPACK_OK) {
        status = fold_status;
        profiler->error = fold_error;
    }
    return status;
}

static bugpack_status fold_samples(bp_profiler *profiler) {
    uint64_t until_ns =
        bp_clock_monotonic_ns() + profiler->plan.timeout_ns * symbols_share_percent / 100;
    return bp_profile_samples_fold(profiler->plan.samples, until_ns, &profiler->is_abandoned,
                                   &profiler->profile, &profiler->error);
}

static void *run(void *argument) {
    bp_profiler *profiler = argument;
    bp_thread_set_name("bugpack-profile");
    bugpack_status status =
        profiler->plan.samples != NULL ? fold_samples(profiler) : sample_and_fold(profiler);
    bp_lock_acquire(&profiler->lock);
    profiler->status = status;
    profiler->is_done = true;
    (void)pthread_cond_broadcast(&profiler->changed);
    bp_lock_release(&profiler->lock);
    drop(profiler);
    return NULL;
}

static uint64_t choose_rate(uint64_t window_ns) {
    uint64_t rate_hz =
        window_ns < BP_NS_PER_SEC ? usual_rate_hz : sample_count_max / (window_ns / BP_NS_PER_SEC);
    rate_hz = rate_hz < usual_rate_hz ? rate_hz : usual_rate_hz;
    return rate_hz > 0 ? rate_hz : 1;
}

bugpack_status bp_profiler_begin(const bp_profile_plan *plan, bp_profiler **ret_profiler,
                                 bugpack_error *error) {
    bp_profiler *profiler = calloc(1, sizeof *profiler);
    if (profiler == NULL) {
        bp_profile_samples_free(plan->samples);
        return bp_fail_memory(error, "profile a process");
    }
    bp_condition_init(&profiler->changed);
    bp_lock_init(&profiler->lock, BP_LOCK_PROFILER);
    profiler->plan = *plan;
    profiler->profile.facts =
        (bp_profile_facts){.is_known = true, .rate_hz = choose_rate(plan->window_ns)};
    profiler->fold = (bp_profile_fold){.pid = plan->pid,
                                       .birth = plan->birth,
                                       .stop = &profiler->is_abandoned,
                                       .out = &profiler->profile,
                                       .deadline_ns = UINT64_MAX};
    atomic_init(&profiler->references, 2);
    bugpack_status status = bp_thread_start(run, profiler, &profiler->thread, error);
    if (status != BUGPACK_OK) {
        atomic_store(&profiler->references, 1);
        drop(profiler);
        return status;
    }
    *ret_profiler = profiler;
    return BUGPACK_OK;
}

static void begin_end(bp_profiler *profiler) {
    profiler->ending_ns = bp_clock_monotonic_ns();
    profiler->is_ending = true;
    (void)pthread_cond_broadcast(&profiler->changed);
}

bugpack_status bp_profiler_end(bp_profiler *profiler, bp_profile *ret_profile,
                               bugpack_error *error) {
    const uint64_t timeout_ns = profiler->plan.timeout_ns;
    bp_lock_acquire(&profiler->lock);
    begin_end(profiler);
    while (!profiler->is_done && bp_lock_wait_until(&profiler->lock, &profiler->changed,
                                                    profiler->ending_ns + timeout_ns)) {}
    bool is_done = profiler->is_done;
    bp_lock_release(&profiler->lock);
    bugpack_status status;
    if (!is_done) {
        atomic_store(&profiler->is_abandoned, true);
        (void)pthread_detach(profiler->thread);
        status = bp_fail(error, BUGPACK_ERR_TIMEOUT, "it was not done within %llu ms",
                         (unsigned long long)(timeout_ns / BP_NS_PER_MS));
    } else {
        (void)pthread_join(profiler->thread, NULL);
        status = profiler->status;
        if (status == BUGPACK_OK) {
            *ret_profile = profiler->profile;
            profiler->profile.folded = (bp_folded){.lines = NULL};
        } else if (error != NULL) {
            *error = profiler->error;
        }
    }
    drop(profiler);
    return status;
}

void bp_profiler_abandon(bp_profiler *profiler) {
    if (profiler != NULL) {
        atomic_store(&profiler->is_abandoned, true);
        bp_lock_acquire(&profiler->lock);
        begin_end(profiler);
        bp_lock_release(&profiler->lock);
        (void)pthread_detach(profiler->thread);
        drop(profiler);
    }
}
