/*
 * The time that runtime-metrics.json is about: from a first sample to a second one, or the window
 * of the history that ended at the trigger. Worker only.
 */
#ifndef BP_REPORT_WINDOW_H
#define BP_REPORT_WINDOW_H

#include <stdint.h>

#include <bugpack/error.h>

#include "report/bundle.h"
#include "report/job.h"
#include "report/progress.h"

typedef struct bp_window {
    bugpack_status status; /* of the first sample; `error` says why it failed */
    uint64_t began_ns;
    bugpack_error error;
} bp_window;

/* Takes the first sample, unless the job brings a window that has passed already. */
void bp_window_begin(const bp_report_context *context, const bp_job *job, bp_window *ret_window);

/* Waits for the rest of the time between the samples, or until the job is cancelled. */
void bp_window_wait(const bp_report_context *context, const bp_job *job, const bp_window *window,
                    const bp_progress *progress);

/* Takes the second sample and adds runtime-metrics.json, which says why when there are none. */
bugpack_status bp_window_add(const bp_report_context *context, const bp_job *job,
                             const bp_window *window, bp_bundle *bundle, bugpack_error *error);

#endif
