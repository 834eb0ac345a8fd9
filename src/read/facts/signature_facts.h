/*
 * The signature of a report (model/signature.h): the one that its writer stored, or from its facts.
 * Those of a report read in brief are the same.
 */
#ifndef BP_FACTS_SIGNATURE_FACTS_H
#define BP_FACTS_SIGNATURE_FACTS_H

#include "diagnose/evidence.h"
#include "model/signature.h"

/* Signs the trigger of the report, from the evidence of its first process. The text is "" where
 * that is not enough. */
void bp_sign_trigger(const bp_evidence *evidence, bp_signature *ret_signature);

/* Signs the first finding that is about the program; the text is "" without one. At most
 * `max_bytes` of stacks are read. */
void bp_sign_findings(const bp_report_file *report, const bp_findings *findings, uint64_t max_bytes,
                      bp_signature *ret_signature);

#endif
