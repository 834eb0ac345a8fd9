/*
 * The summary of the gaps of a session: a file beside their reports.
 */
#ifndef BP_TRIGGER_GAP_SUMMARY_H
#define BP_TRIGGER_GAP_SUMMARY_H

#include "report/context.h"
#include "trigger/gaps.h"

/* Writes it when the session closes; nothing without a gap. on_diagnostic gets a failure. */
void bp_gap_summary_write(const bp_report_context *context, bp_gaps *gaps);

#endif
