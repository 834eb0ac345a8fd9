/*
 * Computing with a window that is held: no lock, because what is held does not change.
 */
#include "recorder/history.h"
#include "recorder/shared_snapshot.h"

void bp_history_held_release(bp_history_held *held) {
    bp_shared_snapshot_release(held->before);
    bp_shared_snapshot_release(held->after);
    *held = (bp_history_held){NULL, NULL};
}

bugpack_status bp_history_held_compute(const bp_history_held *held, bp_metrics *ret_metrics,
                                       uint64_t *ret_began_ns, uint64_t *ret_ended_ns,
                                       bugpack_error *error) {
    bugpack_status status =
        bp_metrics_compute(&held->before->snapshot, &held->after->snapshot, ret_metrics, error);
    if (status == BUGPACK_OK) {
        *ret_began_ns = held->before->snapshot.taken_ns;
        *ret_ended_ns = held->after->snapshot.taken_ns;
    }
    return status;
}

bool bp_history_window(bp_history *history, uint64_t until_ns, uint64_t max_age_ns,
                       bp_metrics *ret_metrics, uint64_t *ret_began_ns, uint64_t *ret_ended_ns) {
    bp_history_held held = {NULL, NULL};
    bool computed =
        bp_history_hold(history, until_ns, max_age_ns, &held) &&
        bp_history_held_compute(&held, ret_metrics, ret_began_ns, ret_ended_ns, NULL) == BUGPACK_OK;
    bp_history_held_release(&held);
    return computed;
}
