#include "inspect/change.h"

static int64_t subtract(uint64_t after, uint64_t before) {
    if (after >= before) {
        return after - before > INT64_MAX ? INT64_MAX : (int64_t)(after - before);
    }
    return before - after > INT64_MAX ? INT64_MIN : -(int64_t)(before - after);
}

void bp_change_complete(bp_change *change) {
    change->has_delta = change->is_known_before && change->is_known_after;
    change->delta = change->has_delta ? subtract(change->after, change->before) : 0;
    change->has_percent = change->has_delta && change->before > 0;
    change->percent = 0;
    if (change->has_percent) {
        double share =
            100.0 * ((double)change->after - (double)change->before) / (double)change->before;
        double hundredths = share * 100.0 + (share < 0 ? -0.5 : 0.5);
        change->percent =
            hundredths > -1e15 && hundredths < 1e15 ? (double)(int64_t)hundredths / 100.0 : share;
    }
}
