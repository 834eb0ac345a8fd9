/*
 * What a command writes, line by line and stream by stream.
 */
#ifndef BP_RUN_LINES_H
#define BP_RUN_LINES_H

#include <stddef.h>

#include "run/child.h"

/* Takes one line, without its end; it may hold any bytes and may be empty. One that is longer than
 * BUGPACK_LOG_MESSAGE_MAX_BYTES comes in parts. */
typedef void bp_run_line_taker(void *context, bp_run_stream stream, const char *line,
                               size_t line_bytes);

/* One thread at a time. */
typedef struct bp_run_lines bp_run_lines;

/* NULL without memory. */
bp_run_lines *bp_run_lines_new(bp_run_line_taker *take, void *context);
void bp_run_lines_free(bp_run_lines *lines);

/* Gives every line that is now whole. */
void bp_run_lines_feed(bp_run_lines *lines, bp_run_stream stream, const char *bytes,
                       size_t byte_count);

/* Gives what stands in unfinished lines; their rest is given when it comes. */
void bp_run_lines_flush(bp_run_lines *lines);

#endif
