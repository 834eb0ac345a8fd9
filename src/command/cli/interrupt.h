/*
 * Signals that end what a command waits for. The first one ends the wait, and a second one has its
 * usual effect. A signal that is ignored stays so.
 */
#ifndef BP_CLI_INTERRUPT_H
#define BP_CLI_INTERRUPT_H

#include <stdbool.h>

#include <bugpack/error.h>
#include <bugpack/session.h>

/*
 * Waits until the reports of a session are written or have failed. SIGINT, SIGTERM and SIGHUP
 * cancel them within a tenth of a second: the signal is returned (0 otherwise).
 */
int bp_cli_interrupt_flush(bugpack_session *session);

/* Whether a signal has ended the wait. Any thread. */
bool bp_cli_interrupt_came(void);

/* Makes SIGINT and SIGTERM end what follows, with what there is by then: `ret_fd` becomes readable.
 * Once per program. */
bugpack_status bp_cli_interrupt_catch(int *ret_fd, bugpack_error *error);

#endif
