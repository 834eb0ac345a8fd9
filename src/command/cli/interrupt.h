/*
 * Signals that end what a command waits for. The first one ends the wait, and a second one has its
 * usual effect. A signal that is ignored stays so.
 */
#ifndef BP_CLI_INTERRUPT_H
#define BP_CLI_INTERRUPT_H

#include <stdbool.h>

#include <bugpack/error.h>

enum { BP_CLI_SIGNAL_BYTE = 's' };

/*
 * Waits for a byte in `done_pipe` and reads it. SIGINT, SIGTERM and SIGHUP end the wait: the signal
 * is returned (0 otherwise), so that the caller can cancel the report. A signal arrives as the byte
 * BP_CLI_SIGNAL_BYTE in the pipe; whoever else writes to the pipe uses another one.
 */
int bp_cli_interrupt_wait(const int done_pipe[2]);

/* True once a signal has ended the wait. Any thread. */
bool bp_cli_interrupt_came(void);

/* Makes SIGINT and SIGTERM end what follows, with what there is by then: `ret_fd` becomes readable.
 * Once per program. */
bugpack_status bp_cli_interrupt_catch(int *ret_fd, bugpack_error *error);

#endif
