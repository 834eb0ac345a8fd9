/*
 * What a person sees of a command's output: the screen of a terminal that its bytes were written
 * to.
 *
 * Drawing costs a thousand times more than passing on, so output waits until somebody looks, and
 * what a screen scrolls away is never drawn (run/flow.h). Where drawing would still take more than
 * a part of one CPU, what waited longest is dropped, and the screen says so.
 */
#ifndef BP_RUN_SCREEN_H
#define BP_RUN_SCREEN_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/buffer.h"

typedef struct bp_run_screen bp_run_screen;

/* A larger window is shown as if it had these sizes. */
#define BP_RUN_SCREEN_ROWS_MAX 200
#define BP_RUN_SCREEN_COLUMNS_MAX 500

/*
 * An empty screen; 0 rows or columns mean 24 or 80. `is_bare`: lines end with a line feed alone, as
 * in a pipe. Errors: UNSUPPORTED (built without libvterm), NO_MEMORY.
 */
bugpack_status bp_run_screen_new(int rows, int columns, bool is_bare, bp_run_screen **ret_screen,
                                 bugpack_error *error);
void bp_run_screen_free(bp_run_screen *screen); /* NULL is fine */

/* The next bytes of output; any bytes. Any thread, as for all that follows. */
void bp_run_screen_feed(bp_run_screen *screen, const char *bytes, size_t byte_count);

void bp_run_screen_resize(bp_run_screen *screen, int rows, int columns);

/*
 * Appends the lines of the screen as UTF-8 text without control characters but line feeds, and
 * without blanks at their ends. `ret_is_partial`: some of what was drawn is missing. A mode that
 * was set in what is missing is lost even when all of the screen was drawn anew since. Errors:
 * NO_MEMORY, LIMIT.
 */
bugpack_status bp_run_screen_print(bp_run_screen *screen, bp_buffer *out, bool *ret_is_partial,
                                   bugpack_error *error);

#endif
