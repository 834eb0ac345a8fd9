/*
 * The signals that `bugpack run` answers, as bytes in a pipe that its loop polls.
 */
#ifndef BP_RUN_SIGNALS_H
#define BP_RUN_SIGNALS_H

#include <stdbool.h>

#include <bugpack/error.h>

typedef struct bp_run_signal {
    unsigned char number;
    /* Sent by the kernel for a key on the terminal or a hangup, to the whole process group. */
    bool is_of_kernel;
} bp_run_signal;

/*
 * Catches SIGCHLD, SIGWINCH, SIGCONT, SIGUSR1 and what is passed on to the command: SIGHUP, SIGINT,
 * SIGQUIT, SIGTERM, SIGUSR2, SIGALRM, and SIGTSTP when `with_stop`. What was ignored when the
 * program began (nohup(1)) stays ignored, except for the first four. Once a process. Errors: IO.
 */
bugpack_status bp_run_signals_catch(bool with_stop, bugpack_error *error);

/* Every signal then does what it did before. */
void bp_run_signals_release(void);

/* The next signal that waits; false when there is none. */
bool bp_run_signals_next(bp_run_signal *ret_signal);

/* To poll. */
int bp_run_signals_fd(void);

#endif
