/*
 * Splits bytes that come in pieces of any size into lines, for output that code writes to stdio.
 */
#ifndef BP_RECORDER_LINE_SPLITTER_H
#define BP_RECORDER_LINE_SPLITTER_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/log.h>

/* Takes one line, or `part` of it (bugpack/log.h), without its end; it may hold any bytes, also
 * NUL, and may be empty. */
typedef void bp_line_taker(void *context, const char *line, size_t line_bytes, unsigned part);

/* One byte more than a line, so that a carriage return before the newline still fits in. */
#define BP_LINE_PENDING_BYTES (BUGPACK_LOG_MESSAGE_MAX_BYTES + 1)

/* About 4 KiB, in the caller's storage. One thread at a time. */
typedef struct bp_line_splitter {
    bp_line_taker *take;
    void *context;
    bool has_begun; /* a part of the current line was given already */
    size_t pending_bytes;
    char pending[BP_LINE_PENDING_BYTES];
} bp_line_splitter;

void bp_line_splitter_init(bp_line_splitter *splitter, bp_line_taker *take, void *context);

/*
 * Gives every line that is now complete; the rest stays pending. A line ends with a newline, or a
 * carriage return and a newline. One over BUGPACK_LOG_MESSAGE_MAX_BYTES is given in parts.
 */
void bp_line_splitter_feed(bp_line_splitter *splitter, const char *bytes, size_t byte_count);

/* Gives the pending bytes as a part of a line, without a final carriage return. A newline that
 * follows adds no line. */
void bp_line_splitter_flush(bp_line_splitter *splitter);

#endif
