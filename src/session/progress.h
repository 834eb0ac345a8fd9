/*
 * How far a report is, and the wait that its sample window is. Worker only.
 */
#ifndef BP_SESSION_PROGRESS_H
#define BP_SESSION_PROGRESS_H

#include <stdint.h>

#include "report/bundle.h"
#include "session/order.h"

typedef enum bp_stage {
    BP_STAGE_SNAPSHOT,
    BP_STAGE_PROVIDERS,
    BP_STAGE_RECORDED,
    BP_STAGE_WINDOW,
    BP_STAGE_METRICS,
    BP_STAGE_ARCHIVE
} bp_stage;

/*
 * Called wherever a report has come a step further: `done` of `total` steps of a stage (0 of 0 is
 * all of it). Tells the host when that is another percent, and ends reports that were cancelled
 * behind this one; the order's own halt is still to be asked.
 */
void bp_progress_step(struct bugpack *session, bp_order *order, bp_stage stage, uint64_t done,
                      uint64_t total);

/* Waits for a window from `began_ns` to `end_ns` (monotonic) to pass, or for the order's halt. */
void bp_progress_wait(struct bugpack *session, bp_order *order, uint64_t began_ns, uint64_t end_ns);

#endif
