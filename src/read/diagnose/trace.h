/*
 * The trace that a runtime prints with an error: Python, Node, Java, Go, HotSpot, valgrind. Pure.
 */
#ifndef BP_DIAGNOSE_TRACE_H
#define BP_DIAGNOSE_TRACE_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "diagnose/evidence.h"

enum { BP_TRACE_PLACE_BYTES = 128 };

/* A line of the output, and the same without its indentation. */
static inline const char *bp_output_line(const bp_evidence *evidence, uint64_t number) {
    return evidence->output[number % BP_EVIDENCE_LINE_MAX];
}
static inline const char *bp_output_text(const bp_evidence *evidence, uint64_t number) {
    const char *line = bp_output_line(evidence, number);
    return line + strspn(line, " \t");
}

/* The innermost function, with its line, of the trace of the error in line `at`: one of the
 * program's own, or of a package that it uses, but none that comes with the runtime. For HotSpot,
 * the frame that it names. Lines before `first` are not looked at. "" for none. */
void bp_trace_find_place(const bp_evidence *evidence, uint64_t first, uint64_t at,
                         char out[BP_TRACE_PLACE_BYTES]);

#endif
