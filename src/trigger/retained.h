/*
 * Retained snapshots: the rings as they were when the host notified its user, for a report that the
 * user may file a while later.
 *
 * A retained snapshot is a job that is submitted for its snapshot alone. A report borrows it; one
 * that fails gives it back, so that the user can try again until it expires.
 */
#ifndef BP_TRIGGER_RETAINED_H
#define BP_TRIGGER_RETAINED_H

#include <stdint.h>

#include "report/job.h"

/* One snapshot that is on loan to a report. */
typedef struct bp_retained bp_retained;

/* Retains a snapshot of now; its number, or 0. `self` is the trigger's object. Any thread. */
uint64_t bp_retained_add(void *self);

/*
 * Lends the snapshot `number` to `job`, which becomes one of the kind `notification` with the
 * snapshot's instant and window. NO_TICKET when it is not retained any more, or lent already. The
 * job calls the other functions from its type. Any thread.
 */
bugpack_status bp_retained_lend(void *self, uint64_t number, bp_job *job, bp_retained **ret_loan);

/* Gives the job the rings; the reason where there are none. Snapshot thread. */
bugpack_status bp_retained_take_snapshot(bp_retained *loan, bp_job *job, bugpack_error *error);

/* The report is written: the snapshot is used up. Or it failed, and may be tried again. */
void bp_retained_settled(bp_retained *loan, const bugpack_report_result *result);

/* Ends the loan: `job` does not look at the snapshot any more. */
void bp_retained_give_back(bp_retained *loan, const bp_job *job);

#endif
