/*
 * The summary of the gaps of a session, a file beside their reports.
 */
#ifndef BP_TRIGGER_PEDANTIC_SUMMARY_H
#define BP_TRIGGER_PEDANTIC_SUMMARY_H

#include "report/context.h"
#include "trigger/gaps.h"

/* Writes it; nothing without a gap. */
bugpack_status bp_pedantic_write_summary(const bp_report_context *context, bp_gaps *gaps,
                                         bugpack_error *error);

#endif
