/*
 * The patterns that make a gap out of a line.
 */
#ifndef BP_RUN_PATTERN_H
#define BP_RUN_PATTERN_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

/* Longer keys are cut, between characters. */
enum { BP_RUN_KEY_BYTES = 256 };

typedef struct bp_run_patterns bp_run_patterns;

/* NULL without memory. */
bp_run_patterns *bp_run_patterns_new(void);
void bp_run_patterns_free(bp_run_patterns *patterns);

/* Adds a POSIX extended regular expression. INVALID, with what is wrong with it, or NO_MEMORY. */
bugpack_status bp_run_patterns_add(bp_run_patterns *patterns, const char *expression,
                                   bugpack_error *error);

size_t bp_run_patterns_count(const bp_run_patterns *patterns);

/*
 * Asks the patterns, in their order, about a line (any bytes, at most a log record's worth; escape
 * sequences are not looked at), and gives the key of the first that matches: its first group, or
 * the whole match where it has no group or that one took no part. A text of the form
 * "channel:kind:detail", its first two parts of letters, digits, '_', '.' and '-', is the key as it
 * is; any other becomes the detail of "<stream>:line:<text>". An empty text is no match.
 */
bool bp_run_patterns_match(const bp_run_patterns *patterns, const char *stream, const char *line,
                           size_t line_bytes, char ret_key[BP_RUN_KEY_BYTES]);

#endif
