/*
 * Text that came from outside, on its way to a terminal, to JSON, or into the name of an entry.
 */
#ifndef BP_CLI_TEXT_H
#define BP_CLI_TEXT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* What bp_cli_text_next gives for a byte that belongs to no well-formed character. */
#define BP_CLI_TEXT_INVALID UINT32_MAX

/*
 * The length in bytes of the UTF-8 character at `text`, which must not be at its NUL, and its code
 * point. A byte that is not part of a well-formed sequence has length 1 and BP_CLI_TEXT_INVALID.
 */
size_t bp_cli_text_next(const char *text, uint32_t *ret_code_point);

/*
 * Copies `text` so that it cannot steer a terminal: control characters (C0, DEL, C1) and bytes that
 * are not UTF-8 become \xNN. What does not fit is cut between characters. `out_bytes` is over 0.
 */
void bp_cli_text_escape(const char *text, char *out, size_t out_bytes);

/*
 * Writes `text` as a JSON string with its quotes. A byte that is not UTF-8 becomes U+EF00 plus the
 * byte, as everywhere in a report. Failures show in ferror(stream).
 */
void bp_cli_text_write_json(FILE *stream, const char *text);

#endif
