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

/* Divides a stream into lines. One over 1 MiB is passed over. */
typedef struct bp_line_stream {
    bp_json_line_taker *take;
    void *context;
    bp_buffer rest; /* the beginning of a line */
} bp_line_stream;

void bp_line_stream_init(bp_line_stream *stream, bp_json_line_taker *take, void *context);
/* Takes a last line that has no newline, and frees the stream. */
void bp_line_stream_release(bp_line_stream *stream);

/* A bp_sink. */
bugpack_status bp_line_stream_write(void *stream, const void *bytes, size_t byte_count);

/* Takes the lines of an entry, of at most `max_bytes`. Errors of bp_report_file_stream. */
bugpack_status bp_report_lines(const bp_report_file *report, const char *entry, uint64_t max_bytes,
                               bp_json_line_taker *take, void *context, bugpack_error *error);

/* Appends a string, decoded. False for what is none, and where there is no memory. */
bool bp_json_line_decode(const bp_json_token *token, bp_buffer *out);

/* The same, cut to fit; "" for what is none. */
void bp_json_line_text(const bp_json_token *token, char *out, size_t out_bytes);

/* A time as a report has it, in nanoseconds since 1970; 0 for what is none. */
uint64_t bp_json_line_time(const bp_json_token *token);

#endif
