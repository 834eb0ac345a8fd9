/*
 * Which part of a terminal's output can be left out without a difference on the screen.
 *
 * Text, line ends, colours and erased ends of lines flow: once a screen has scrolled past all of
 * its rows, nothing of what was there before is left. Anything else may move the cursor or change a
 * mode, and whoever draws the screen must see it.
 */
#ifndef BP_RUN_FLOW_H
#define BP_RUN_FLOW_H

#include <stdbool.h>
#include <stddef.h>

typedef struct bp_run_flow {
    size_t moving_bytes; /* up to here it does more than flow */
    size_t whole_bytes;  /* up to here no escape sequence is incomplete */
    size_t cleared_at;   /* where the last sequence that clears the screen begins; SIZE_MAX: none */
} bp_run_flow;

/*
 * Looks at `byte_count` bytes that begin outside an escape sequence, and replaces what libvterm 0.1
 * must not see: a repetition of anything but one ASCII character, which may never end there, and
 * characters of a negative width (U+0080 to U+009F). `is_partial`: only a part of
 * the screen scrolls, because of what came before; it is changed by what comes here.
 */
bp_run_flow bp_run_flow_scan(char *bytes, size_t byte_count, int row_count, bool *is_partial);

/*
 * The last place behind a line end from which on flowing output replaces a screen of `row_count`
 * rows, wherever its cursor was. 0 when there is too little of it.
 */
size_t bp_run_flow_tail(const char *bytes, size_t byte_count, int row_count);

#endif
