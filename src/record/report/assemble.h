/*
 * One report, from the first sample to the published zip.
 */
#ifndef BP_REPORT_ASSEMBLE_H
#define BP_REPORT_ASSEMBLE_H

#include "report/job.h"

/* The progress of a report, and its waits. */
typedef struct bp_progress {
    /* Called at every step, with a percentage that may be the same as before. */
    void (*on_step)(void *context, uint32_t percent);
    /* Waits until `until_ns` (monotonic), or less. False: the report should wait no longer. */
    bool (*wait)(void *context, uint64_t until_ns);
    /* Waits until the snapshot thread has filled its fields of the job. */
    void (*wait_snapshot)(void *context);
    void *context;
} bp_progress;

/*
 * Assembles the job's report and publishes it; fills the result on success and on failure. Worker
 * only, or with neither a runner nor progress (NULL) for a job that has its snapshot, and whose
 * context has no subject: that of a dead session.
 */
void bp_assemble(const bp_report_context *context, bp_runner *runner, bp_job *job,
                 const bp_progress *progress, bugpack_report_result *result);

#endif
