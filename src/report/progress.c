#include "report/progress.h"

#include "base/clock.h"

/* Where each stage begins, in percent. A sample window takes most of the time where there is one;
 * the last percents are the disk's. */
static const unsigned char begins_with_window[] = {0, 2, 10, 15, 75, 78, 97};
static const unsigned char begins_without[] = {0, 5, 35, 45, 45, 48, 97};

/* How often a wait looks at its progress. */
static const uint64_t look_interval_ns = 50 * BP_NS_PER_MS;

void bp_progress_step(const bp_progress *progress, bp_stage stage, uint64_t done, uint64_t total) {
    const unsigned char *begins = progress->has_window ? begins_without : begins_with_window;
    /* No overflow: a report has fewer than 2^57 bytes, and a window fewer nanoseconds. */
    uint64_t part = done >= total ? 100 : 100 * done / total;
    progress->on_step(progress->context,
                      (uint32_t)(begins[stage] + (begins[stage + 1] - begins[stage]) * part / 100));
}

void bp_progress_wait(const bp_progress *progress, const bp_cancel_token *token, uint64_t began_ns,
                      uint64_t end_ns) {
    bool may_wait = true;
    uint64_t now_ns = bp_clock_monotonic_ns();
    while (may_wait && now_ns < end_ns && !bp_cancel_is_due(token)) {
        bp_progress_step(progress, BP_STAGE_WINDOW, now_ns - began_ns, end_ns - began_ns);
        uint64_t until_ns = now_ns + look_interval_ns < end_ns ? now_ns + look_interval_ns : end_ns;
        may_wait = progress->wait(progress->context, until_ns);
        now_ns = bp_clock_monotonic_ns();
    }
}
