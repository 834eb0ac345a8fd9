/*
 * Waiting for a report, with a bar for the person who waits.
 */
#ifndef BP_CLI_PROGRESS_H
#define BP_CLI_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

/* True when standard error is a terminal that understands "erase to the end of the line". */
bool bp_cli_progress_is_possible(void);

/* How far a work is whose end is not a matter of time; another thread writes it. */
typedef struct bp_cli_steps {
    atomic_uint_fast64_t done, total;
} bp_cli_steps;

/*
 * Waits until a byte is in `done_pipe`, which is read. With `show`, a bar on standard error tells
 * how much of the window of `window_ms` has passed, or how many of the `steps` (NULL: there is a
 * window), and then that the report is being written; it is erased at the end. Colour unless
 * NO_COLOR is set.
 *
 * SIGINT, SIGTERM and SIGHUP end the wait, once: the signal is returned (0 otherwise), so that the
 * report can be taken back, and the same signal again has the effect that it had before. It comes
 * as a byte BP_CLI_SIGNAL_BYTE in the pipe; whoever writes to it writes another one.
 */
enum { BP_CLI_SIGNAL_BYTE = 's' };
int bp_cli_progress_wait(const int done_pipe[2], uint32_t window_ms, const bp_cli_steps *steps,
                         bool show);

#endif
