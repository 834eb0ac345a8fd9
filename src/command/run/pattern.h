/*
 * The patterns that turn a line into a gap.
 */
#ifndef BP_RUN_PATTERN_H
#define BP_RUN_PATTERN_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

/* Longer keys are cut, between characters. Each pattern costs a look at every line. */
enum { BP_RUN_KEY_BYTES = 256, BP_RUN_PATTERN_MAX = 64 };

/* All zero: none. Released with bp_run_patterns_release. */
typedef struct bp_run_patterns {
    regex_t compiled[BP_RUN_PATTERN_MAX];
    size_t count;
} bp_run_patterns;

void bp_run_patterns_release(bp_run_patterns *patterns);

/* Adds a POSIX extended regular expression. Errors: INVALID, NO_MEMORY. */
bugpack_status bp_run_patterns_add(bp_run_patterns *patterns, const char *expression,
                                   bugpack_error *error);

/*
 * Matches the patterns, in their order, against a line (any bytes, at most a log record's worth;
 * escape sequences are skipped), and gives the key of the first that matches: its first group, or
 * the whole match where it has no group or the group took no part. A text of the form
 * "channel:kind:detail", with channel and kind of letters, digits, '_', '.' and '-', is the key as
 * it is; any other becomes the detail of "<stream>:line:<text>". An empty text is no match.
 */
bool bp_run_patterns_match(const bp_run_patterns *patterns, const char *stream, const char *line,
                           size_t line_bytes, char ret_key[BP_RUN_KEY_BYTES]);

#endif
