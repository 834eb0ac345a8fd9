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
 *
 * Where standard output is a terminal and a keyboard can be had (standard input, or the controlling
 * terminal), the command gets a pseudo-terminal that controls it. Otherwise it reads our standard
 * input itself, and standard output and standard error are pipes, or for one that is a terminal a
 * pseudo-terminal that only carries output, so that isatty(3) answers as it would without us. Where
 * both are one file (">log 2>&1") they are one pipe, which keeps the order of what is written.
 */
#ifndef BP_RUN_CHILD_H
#define BP_RUN_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "run/terminal.h"

typedef enum bp_run_stream {
    BP_RUN_STDOUT = 0,
    BP_RUN_STDERR = 1,
    BP_RUN_TERMINAL = 2, /* both, mixed, as on a screen */
    BP_RUN_OUTPUT = 3    /* both, mixed, because they are one file */
} bp_run_stream;

#define BP_RUN_STREAM_COUNT 4

/* What the command writes: from our end of its pipe or terminal to our own descriptor. */
typedef struct bp_run_output {
    bp_run_stream stream;
    int from_fd;
    int to_fd; /* 1 or 2; not ours to close */
} bp_run_output;

/* -1: not there. */
typedef struct bp_run_pipes {
    /* Our ends. */
    bp_run_terminal terminal; /* the keyboard's */
    bool owns_keyboard;       /* we opened the terminal's descriptor */
    int keyboard_to_fd;       /* the pseudo-terminal that takes what is typed; an output too */
    bp_run_output outputs[2];
    size_t output_count;
    int go_fd;      /* a byte: execute; the end: give up */
    int failure_fd; /* a 0 when the process waits for that, the errno when executing fails */
    /* The command's ends, gone from this process once it is started. */
    int standard[3]; /* -1: inherited */
    int slave;       /* of the controlling pseudo-terminal */
    int go_from_fd, failure_to_fd;
} bp_run_pipes;

/* In the caller's storage. */
typedef struct bp_run_child {
    char **arguments;  /* borrowed */
    bool ignores_pipe; /* SIGPIPE was ignored when this program began, and is to be again */
    pid_t pid;         /* the command's, valid until bp_run_child_reap, also after its end */
    pid_t monitor_pid; /* -1: there is none */
    int monitor_fd;
    bp_run_pipes pipes;
} bp_run_child;

/*
 * Starts a process that will become the command when it is let go; it has the command's name
 * already. Call it before this program starts its first thread. Errors: IO.
 */
bugpack_status bp_run_child_start(char **arguments, bool ignores_pipe, bp_run_child *ret_child,
                                  bugpack_error *error);

/*
 * Lets the process become the command: searches PATH, executes. An error has execvp's errno
 * (ENOENT: there is no such program).
 */
bugpack_status bp_run_child_let_go(bp_run_child *child, bugpack_error *error);

/* How a command ended: with an exit status, or by a signal. */
typedef struct bp_run_end {
    bool is_signal;
    bool has_core;
    int value;       /* the status, or the signal's number */
    uint64_t cpu_ns; /* that it used, with the children it waited for; 0: not known */
} bp_run_end;

/* What a shell adds to the number of a signal that ended its command, as its own status. */
#define BP_RUN_STATUS_OF_SIGNAL 128

/* What is known of the command. Its monitor does not report BP_RUN_STARTED. */
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

/* The signals that the command got from its user: a key, a signal to this program, a hang-up, or
 * SIGPIPE for a reader that went away. A shell that ends sends a stopped job several. */
typedef struct bp_run_passed_on {
    uint64_t numbers; /* a bit for each */
    uint64_t when_ns; /* monotonic, of the newest that asks to end; 0: none */
} bp_run_passed_on;

/* Adds one. SIGUSR2 and SIGALRM ask nobody to end. */
void bp_run_pass_on(bp_run_passed_on *passed_on, int number, uint64_t now_ns);

/*
 * Whether these signals explain an end at `now_ns`: a death by one, or the status that a shell
 * makes of one, at any time; any other status within ten seconds, because a program may take so
 * long to end.
 */
bool bp_run_is_expected(bp_run_passed_on passed_on, const bp_run_end *end, uint64_t now_ns);

#endif
