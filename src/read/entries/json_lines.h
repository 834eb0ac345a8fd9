/*
 * Entries of a report that have one JSON object per line, read as a stream.
 */
#ifndef BP_ENTRIES_JSON_LINES_H
#define BP_ENTRIES_JSON_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "entries/report_file.h"
#include "json/member.h"

/* Gets a line without its newline. Any status but OK ends the stream as NO_MEMORY. */
typedef bugpack_status bp_json_line_taker(void *context, const char *line, size_t line_bytes);

/* Takes the lines of an entry, of at most `max_bytes`. One over 1 MiB is passed over. Errors of
 * bp_report_file_stream. */
bugpack_status bp_report_lines(const bp_report_file *report, const char *entry, uint64_t max_bytes,
                               bp_json_line_taker *take, void *context, bugpack_error *error);

/* Appends a string, decoded. False for what is none, and where there is no memory. */
bool bp_json_line_decode(const bp_json_token *token, bp_buffer *out);

/* The same, cut in its middle to fit; "" for what is none. */
void bp_json_line_text(const bp_json_token *token, char *out, size_t out_bytes);

/* A time as a report has it, in nanoseconds since 1970; 0 for what is none. */
uint64_t bp_json_line_time(const bp_json_token *token);

#endif
