#include "profile/profile_ring.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/pages.h"
#include "base/status.h"
#include "platform/linux/perf_events.h"
#include "profile/profile_samples.h"

/* How far back a profile reaches at most, and how much of that each ring has room for while all
 * processors are busy. */
static const uint64_t reach_ns = 10 * BP_NS_PER_SEC;
static const uint64_t full_secs = 3;

static const size_t least_bytes = (size_t)64 << 10, most_bytes = (size_t)4 << 20;

struct bp_profile_ring {
    pid_t pid;
    uint64_t rate_hz, opened_ns;
    bp_perf_events events;
    bugpack_error error; /* why there are none; its status is OK otherwise */
};

bp_profile_ring *bp_profile_ring_open(pid_t pid, uint32_t rate_hz) {
    bp_profile_ring *ring = calloc(1, sizeof *ring);
    if (ring == NULL) {
        return NULL;
    }
    bp_perf_plan plan = {.pid = pid != 0 ? pid : getpid(),
                         .rate_hz = rate_hz,
                         .ring_bytes = least_bytes,
                         .is_backward = true,
                         .is_followed = pid != 0};
    while (plan.ring_bytes < rate_hz * full_secs * BP_PERF_SAMPLE_BYTES &&
           plan.ring_bytes < most_bytes) {
        plan.ring_bytes *= 2;
    }
    ring->pid = plan.pid;
    ring->rate_hz = rate_hz;
    if (bp_perf_events_open(&ring->events, &plan, &ring->error) != BUGPACK_OK) {
        bp_perf_events_close(&ring->events);
    }
    ring->opened_ns = bp_clock_monotonic_ns();
    return ring;
}

const char *bp_profile_ring_trouble(const bp_profile_ring *ring) {
    return ring->error.status != BUGPACK_OK ? ring->error.message : NULL;
}

void bp_profile_ring_close(bp_profile_ring *ring) {
    if (ring != NULL) {
        bp_perf_events_close(&ring->events);
        free(ring);
    }
}

void bp_profile_samples_free(bp_profile_samples *samples) {
    for (size_t i = 0; samples != NULL && i < samples->ring_count; i++) {
        bp_pages_free(samples->rings[i].data);
    }
    free(samples);
}

static bool copy_ring(const bp_perf_events *events, size_t at, bp_profile_samples *samples) {
    bp_perf_cursor cursor = bp_perf_events_read(events, at);
    if (cursor.data == NULL || cursor.at == 0) { /* nothing was ever written */
        return true;
    }
    samples->rings[at].data = bp_pages_new(cursor.data_bytes);
    if (samples->rings[at].data == NULL) {
        return false;
    }
    memcpy(samples->rings[at].data, cursor.data, cursor.data_bytes);
    samples->rings[at].data_bytes = cursor.data_bytes;
    samples->rings[at].head = cursor.at;
    return true;
}

bugpack_status bp_profile_ring_copy(const bp_profile_ring *ring, uint64_t until_ns,
                                    bp_profile_samples **ret_samples, bugpack_error *error) {
    const bp_perf_events *events = &ring->events;
    if (ring->error.status != BUGPACK_OK) {
        if (error != NULL) {
            *error = ring->error;
        }
        return ring->error.status;
    }
    if (!bp_perf_events_are_ours(events)) {
        return bp_fail(error, BUGPACK_ERR_IO,
                       "descriptors of the profile were closed by the program");
    }
    bp_profile_samples *samples =
        calloc(1, sizeof *samples + events->ring_count * sizeof samples->rings[0]);
    bool has_memory = samples != NULL;
    if (has_memory) {
        samples->pid = ring->pid;
        samples->rate_hz = ring->rate_hz;
        samples->until_ns = until_ns;
        samples->from_ns = ring->opened_ns;
        if (until_ns > reach_ns && samples->from_ns < until_ns - reach_ns) {
            samples->from_ns = until_ns - reach_ns;
        }
        samples->excludes_kernel = events->excludes_kernel;
        samples->ring_count = events->ring_count;
        bp_perf_events_pause(events, true);
        for (size_t i = 0; i < events->ring_count && has_memory; i++) {
            has_memory = copy_ring(events, i, samples);
        }
        bp_perf_events_pause(events, false);
    }
    if (!has_memory) {
        bp_profile_samples_free(samples);
        return bp_fail_memory(error, "copy the samples of a profile");
    }
    *ret_samples = samples;
    return BUGPACK_OK;
}
