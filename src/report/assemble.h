/*
 * One report, from the first sample to the published zip.
 */
#ifndef BP_REPORT_ASSEMBLE_H
#define BP_REPORT_ASSEMBLE_H

#include "report/job.h"
#include "report/progress.h"

/* Assembles the job's report and publishes it; fills the result on success and on failure. Worker
 * only. */
void bp_assemble(const bp_report_context *context, bp_runner *runner, bp_job *job,
                 const bp_progress *progress, bugpack_report_result *result);

#endif
