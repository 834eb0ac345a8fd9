/*
 * Finds in the output of a program the line that says why it ended. Pure.
 */
#ifndef BP_DIAGNOSE_LAST_WORDS_H
#define BP_DIAGNOSE_LAST_WORDS_H

#include <stdbool.h>

#include "diagnose/evidence.h"
#include "diagnose/trace.h"

/* Lines further back are no cause of the end, except in a trace. */
enum { BP_LAST_WORDS_BYTES = 2 * BP_EVIDENCE_LINE_BYTES, BP_LAST_WORDS_SEARCHED_MAX = 256 };

/* The output that says why the process ended, and where its trace leads; or the abort message of
 * glibc. Without `takes_any`, only by rules that know it for a cause. False with "" for none. */
bool bp_last_words_find(const bp_evidence *evidence, bool takes_any, char out[BP_LAST_WORDS_BYTES],
                        char place[BP_TRACE_PLACE_BYTES]);

#endif
