/*
 * Waiting for a report, with a bar for the person who waits; and ending a command by a signal.
 */
#ifndef BP_CLI_PROGRESS_H
#define BP_CLI_PROGRESS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

/* Progress of work that has no fixed duration; another thread writes it. */
typedef struct bp_cli_steps {
    atomic_uint_fast64_t done, total;
} bp_cli_steps;

enum { BP_CLI_SIGNAL_BYTE = 's' };

/*
 * Waits for a byte in `done_pipe` and reads it. With `show`, a bar on standard error shows how much
 * of the window of `window_ms` has passed, or of the `steps` (NULL: there is a window); it is
 * erased at the end.
 *
 * SIGINT, SIGTERM and SIGHUP end the wait: the signal is returned (0 otherwise), so that the caller
 * can cancel the report. A second signal has its usual effect. A signal arrives as the byte
 * BP_CLI_SIGNAL_BYTE in the pipe; whoever else writes to the pipe uses another one.
 */
int bp_cli_progress_wait(const int done_pipe[2], uint32_t window_ms, const bp_cli_steps *steps,
                         bool show);

/* For another thread that uses the terminal: no bar is drawn meanwhile. The bar that is there is
 * not erased. */
void bp_cli_progress_pause(bool is_to_pause);

/* Whether a signal has ended the wait. Any thread. */
bool bp_cli_progress_is_ended(void);

/*
 * Makes SIGINT and SIGTERM end what follows, with what there is by then: `ret_fd` becomes readable.
 * A second one ends the program as usual. A signal that is ignored stays so. Once per program.
 */
bugpack_status bp_cli_catch_end(int *ret_fd, bugpack_error *error);

#endif
