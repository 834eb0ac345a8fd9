/*
 * The entries of a report that have one JSON object per line, read as a stream.
 */
#ifndef BP_INSPECT_SUMMARY_LINES_H
#define BP_INSPECT_SUMMARY_LINES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "inspect/summary.h"

/* Gets a line without its newline. */
typedef bugpack_status bp_line_taker(bp_summary *summary, const char *line, size_t line_bytes);

/* Divides a stream into lines. One over 1 MiB is passed over. */
typedef struct bp_line_stream {
    bp_line_taker *take;
    bp_summary *summary;
    bp_buffer rest; /* the beginning of a line */
} bp_line_stream;

void bp_line_stream_init(bp_line_stream *stream, bp_line_taker *take, bp_summary *summary);
/* Takes a last line that has no newline, and frees the stream. */
void bp_line_stream_release(bp_line_stream *stream);

/* A bp_sink. */
bugpack_status bp_line_stream_write(void *stream, const void *bytes, size_t byte_count);

typedef struct bp_summary_line_reader {
    const char *entry;
    bp_line_taker *add;
} bp_summary_line_reader;

/* What of each entry goes into the summary. */
extern const bp_summary_line_reader bp_summary_line_readers[];
extern const size_t bp_summary_line_reader_count;

#endif
