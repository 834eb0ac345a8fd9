#include "session/progress.h"

#include <pthread.h>

#include "session/events.h"
#include "session/live.h"
#include "session/session.h"

/* Where each stage begins, in percent: where a window is waited for, that is most of the time. The
 * last percents are the disk's. */
static const unsigned char begins_waiting[] = {0, 2, 10, 15, 75, 78, 97};
static const unsigned char begins_at_once[] = {0, 5, 35, 45, 45, 48, 97};

void bp_progress_step(bugpack *session, bp_order *order, bp_stage stage, uint64_t done,
                      uint64_t total) {
    const unsigned char *begins = order->has_window ? begins_at_once : begins_waiting;
    bp_live_end_cancelled(session);
    /* Neither side is over 100 * 2^57: a report has not that many bytes, nor a window nanoseconds.
     */
    uint64_t part = done >= total ? 100 : 100 * done / total;
    uint32_t percent = (uint32_t)(begins[stage] + (begins[stage + 1] - begins[stage]) * part / 100);
    if (percent > order->percent) {
        order->percent = percent;
        bp_events_tell(session, order, BUGPACK_EVENT_PROGRESS, NULL);
    }
}

/* When to look around: at the end, or for the next percent where somebody wants to see it. */
static uint64_t next_look_ns(bugpack *session, const bp_order *order, uint64_t now_ns,
                             uint64_t window_ns, uint64_t end_ns) {
    static const uint64_t shortest_ns = 50 * BP_NS_PER_MS;
    uint64_t next_ns = end_ns;
    if (order->token.deadline_ns != 0 && order->token.deadline_ns < next_ns) {
        next_ns = order->token.deadline_ns;
    }
    uint64_t percent_ns = window_ns / 60;
    uint64_t step_ns = percent_ns > shortest_ns ? percent_ns : shortest_ns;
    if (bp_events_are_heard(session) && now_ns + step_ns < next_ns) {
        next_ns = now_ns + step_ns;
    }
    return next_ns;
}

void bp_progress_wait(bugpack *session, bp_order *order, uint64_t began_ns, uint64_t end_ns) {
    for (;;) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (now_ns >= end_ns || bp_cancel_is_due(&order->token)) {
            return;
        }
        bp_progress_step(session, order, BP_STAGE_WINDOW, now_ns - began_ns, end_ns - began_ns);
        uint64_t look_ns = next_look_ns(session, order, now_ns, end_ns - began_ns, end_ns);
        (void)pthread_mutex_lock(&session->orders_mutex);
        while (!atomic_load(&session->has_cancelled) && bp_clock_monotonic_ns() < look_ns &&
               bp_condition_wait_until(&session->orders_changed, &session->orders_mutex, look_ns)) {
        }
        (void)pthread_mutex_unlock(&session->orders_mutex);
    }
}
