/*
 * The command that `bugpack run` starts: on a pseudo-terminal or on pipes, held before its first
 * instruction until somebody watches it, and observed to its end.
 *
 * Where standard output is a terminal, and the keyboard can be had (standard input, or the
 * controlling terminal), the command gets a pseudo-terminal as its controlling terminal. A monitor
 * stands between: it leads the new session, and the command has a process group of its own in it.
 * Without it the command's group would be orphaned, and the kernel would not let the terminal stop
 * it (setpgid(2); Ctrl-Z would be dead). The monitor also restores the terminal when this program
 * is killed.
 *
 * Otherwise the command stays in our session and process group, as under env(1) or nice(1): it
 * reads our standard input itself, and the terminal's signals reach it without us. Standard output
 * and standard error are pipes, or for one that is a terminal a pseudo-terminal that only carries
 * output, so that isatty(3) tells the command what it would tell it without us.
 */
#ifndef BP_RUN_CHILD_H
#define BP_RUN_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "run/terminal.h"

typedef enum bp_run_stream {
    BP_RUN_STDOUT = 0,
    BP_RUN_STDERR = 1,
    BP_RUN_TERMINAL = 2 /* both, mixed, as on a screen */
} bp_run_stream;

#define BP_RUN_STREAM_COUNT 3

/* "stdout", "stderr", "terminal": the channel in the log. */
const char *bp_run_stream_name(bp_run_stream stream);

/* What the command writes: from our end of its pipe or terminal to our own descriptor. */
typedef struct bp_run_output {
    bp_run_stream stream;
    int from_fd;
    int to_fd; /* 1 or 2; not ours to close */
} bp_run_output;

/* How a command ended: with an exit status, or by a signal. */
typedef struct bp_run_end {
    bool is_signal;
    bool has_core;
    int value; /* the status, or the signal's number */
} bp_run_end;

/* In the caller's storage. What is negative is not there. */
typedef struct bp_run_child {
    pid_t pid;         /* the command's, valid until bp_run_child_reap, also after its end */
    pid_t monitor_pid; /* -1 without a pseudo-terminal to control it */
    int monitor_fd;
    int go_fd, failure_fd;
    bp_run_terminal terminal; /* the keyboard's; its fd may be one that we opened */
    bool owns_keyboard;
    int keyboard_to_fd; /* the pseudo-terminal that takes what is typed; one of `outputs` too */
    bp_run_output outputs[2];
    size_t output_count;
} bp_run_child;

/*
 * Starts a process that will become the command when it is let go; it has the command's name
 * already. `ignores_pipe`: SIGPIPE was ignored when this program began, and is to be again. To be
 * called before the first thread of this program. Errors: IO.
 */
bugpack_status bp_run_child_start(char **arguments, bool ignores_pipe, bp_run_child *ret_child,
                                  bugpack_error *error);

/*
 * Lets the process become the command: searches PATH, executes. OK when it has. An error
 * has execvp's errno (ENOENT: there is no such program).
 */
bugpack_status bp_run_child_let_go(bp_run_child *child, bugpack_error *error);

/* Looks, without waiting, whether the command has ended: for the case without a monitor. */
bool bp_run_child_has_ended(const bp_run_child *child, bp_run_end *ret_end);

/* What the monitor tells. */
typedef enum bp_run_news { BP_RUN_NOTHING, BP_RUN_STOPPED, BP_RUN_ENDED, BP_RUN_LOST } bp_run_news;

/* Reads the monitor's next word; BP_RUN_LOST when it is gone. `ret_end` also has the signal that
 * stopped the command. */
bp_run_news bp_run_child_read_news(bp_run_child *child, bp_run_end *ret_end);

/* Gives the ended command's process id back to the system, and closes everything. A command that
 * was never let go ends. */
void bp_run_child_reap(bp_run_child *child);

#endif
