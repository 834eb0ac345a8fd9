/*
 * How far a report is, and what it waits for. Worker only.
 */
#ifndef BP_REPORT_PROGRESS_H
#define BP_REPORT_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cancel.h"

typedef enum bp_stage {
    BP_STAGE_SNAPSHOT,
    BP_STAGE_PROVIDERS,
    BP_STAGE_RINGS,
    BP_STAGE_WINDOW,
    BP_STAGE_METRICS,
    BP_STAGE_ARCHIVE
} bp_stage;

typedef struct bp_progress {
    /* Called at every step, with a percentage that may be the same as before. */
    void (*on_step)(void *context, uint32_t percent);
    /* Waits until `until_ns` (monotonic) or until there is something to look at. False: the report
     * should not wait any longer. */
    bool (*wait)(void *context, uint64_t until_ns);
    /* Waits until the job's snapshot fields are there. */
    void (*wait_snapshot)(void *context);
    void *context;
    bool has_window; /* no sample window has to pass */
} bp_progress;

/* A report has come a step further: `done` of `total` steps of a stage (0 of 0 is all of it). */
void bp_progress_step(const bp_progress *progress, bp_stage stage, uint64_t done, uint64_t total);

/* Waits for a window from `began_ns` to `end_ns` (monotonic) to pass, or for the token. */
void bp_progress_wait(const bp_progress *progress, const bp_cancel_token *token, uint64_t began_ns,
                      uint64_t end_ns);

#endif
