/*
 * The command that `bugpack run` starts: held before its first instruction until it is let go, and
 * observed until it ends.
 *
 * On a pseudo-terminal that controls it, a monitor process is its parent: the monitor leads the new
 * session, and the command has a process group of its own in it. Without the monitor that group
 * would be orphaned, and the kernel would not let the terminal stop it (setpgid(2); Ctrl-Z would do
 * nothing). The monitor also restores our terminal when this program is killed.
 *
 * Otherwise the command stays in our session and process group, as under env(1) or nice(1), and the
 * terminal's signals reach it without us.
 */
#ifndef BP_RUN_CHILD_H
#define BP_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "run/pipes.h"

/* In the caller's storage. */
typedef struct bp_run_child {
    char **arguments;   /* borrowed */
    bool ignores_pipe;  /* SIGPIPE was ignored when this program began, and is to be again */
    const char *binary; /* its file, where no shell may be tried with it; NULL */
    pid_t pid;          /* the command's, valid until bp_run_child_reap, also after its end */
    pid_t monitor_pid;  /* -1: there is none */
    int monitor_fd;
    bp_run_pipes pipes;
} bp_run_child;

/*
 * Starts a process that will become the command when it is let go; it has the command's name
 * already. `binary` as in the struct. Call it before this program starts its first thread.
 * Errors: IO.
 */
bugpack_status bp_run_child_start(char **arguments, bool ignores_pipe, const char *binary,
                                  bp_run_child *ret_child, bugpack_error *error);

/*
 * Lets the process become the command: searches PATH, executes. An error has execvp's errno
 * (ENOENT: there is no such program, or not what interprets it; ENOEXEC: of a binary alone).
 */
bugpack_status bp_run_child_let_go(bp_run_child *child, bugpack_error *error);

/* How a command ended: with an exit status, or by a signal. */
typedef struct bp_run_end {
    bool is_signal;
    bool has_core;
    int value;       /* the status, or the signal's number */
    uint64_t cpu_ns; /* that it used, with the children it waited for; 0: not known */
} bp_run_end;

/* A shell ends with this plus the number of the signal that ended its command. */
#define BP_RUN_STATUS_OF_SIGNAL 128

/* States of the command. Its monitor does not report BP_RUN_STARTED. */
typedef enum bp_run_news { BP_RUN_STARTED, BP_RUN_STOPPED, BP_RUN_ENDED, BP_RUN_LOST } bp_run_news;

/* Looks, without waiting, at a command without a monitor: BP_RUN_STARTED until it has ended,
 * BP_RUN_LOST where the system does not say. */
bp_run_news bp_run_child_look(const bp_run_child *child, bp_run_end *ret_end);

/* Reads the monitor's next report; BP_RUN_LOST when the monitor is gone. `ret_end` also has the
 * signal that stopped the command. */
bp_run_news bp_run_child_read_news(bp_run_child *child, bp_run_end *ret_end);

/* Reaps the ended command and closes everything. A command that was never let go ends. */
void bp_run_child_reap(bp_run_child *child);

/* How a child ended, or what stopped it, from what waitid(2) filled in. */
bp_run_end bp_run_end_of(const siginfo_t *info);

#endif
