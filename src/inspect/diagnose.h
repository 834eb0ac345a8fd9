/*
 * Runs the diagnoses of inspect/findings.h.
 */
#ifndef BP_INSPECT_DIAGNOSE_H
#define BP_INSPECT_DIAGNOSE_H

#include "inspect/evidence.h"

/* Adds what all diagnoses find. Once for each process, as soon as all is read of it. */
void bp_diagnose(bp_evidence *evidence);

#endif
