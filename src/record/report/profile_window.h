/*
 * profile.folded of one process, while a report is made.
 */
#ifndef BP_REPORT_PROFILE_WINDOW_H
#define BP_REPORT_PROFILE_WINDOW_H

#include "profile/profile.h"
#include "report/job.h"

/* All zero: there will be no entry. */
typedef struct bp_profile_window {
    bool is_asked_for, is_left_out; /* the second: on request */
    bp_profiler *profiler;          /* NULL: `error` says why, or it has ended */
    bugpack_error error;
} bp_profile_window;

/*
 * Begins to sample the subject, if it is another process and the report has a window of its own; or
 * takes what the session has sampled up to the trigger. Returns at once.
 */
void bp_profile_window_begin(const bp_report_context *context, bp_subject *subject,
                             const bp_job *job, bp_profile_window *ret_window);

/* Ends it, and adds the entry, or its line of the manifest that says why there is none. */
bugpack_status bp_profile_window_add(bp_profile_window *window, const bp_subject *subject,
                                     bp_bundle *bundle, bugpack_error *error);

#endif
