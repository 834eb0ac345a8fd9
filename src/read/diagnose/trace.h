/*
 * The trace that a runtime prints with an error: Python, Node, Java, Go, HotSpot, valgrind. Pure.
 */
#ifndef BP_DIAGNOSE_TRACE_H
#define BP_DIAGNOSE_TRACE_H

#include <stdbool.h>

#include "diagnose/evidence.h"

enum { BP_TRACE_PLACE_BYTES = 128 };

/* With its indentation. */
static inline const char *bp_output_line(const bp_evidence *evidence, uint64_t number) {
    return evidence->output[number % BP_EVIDENCE_LINE_MAX];
}

/* The innermost function, with its line, of the trace of the error in line `at`: one of the
 * program's own, or of a package that it uses, but none that comes with the runtime. For HotSpot,
 * the frame that it names. Lines before `first` are not looked at. "" for none. */
void bp_trace_find_place(const bp_evidence *evidence, uint64_t first, uint64_t at,
                         char out[BP_TRACE_PLACE_BYTES]);

#endif
