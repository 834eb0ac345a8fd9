/*
 * What connects this program with the command of `bugpack run`: pipes, and pseudo-terminals.
 *
 * Where standard output is a terminal and a keyboard can be had (standard input, or the controlling
 * terminal), the command gets a pseudo-terminal that controls it. Otherwise it reads our standard
 * input itself, and standard output and standard error are pipes, or for one that is a terminal a
 * pseudo-terminal that only carries output, so that isatty(3) answers as it would without us. Where
 * both are one file (">log 2>&1") they are one pipe, which keeps the order of what is written.
 */
#ifndef BP_RUN_PIPES_H
#define BP_RUN_PIPES_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "run/terminal.h"

typedef enum bp_run_stream {
    BP_RUN_STDOUT = 0,
    BP_RUN_STDERR = 1,
    BP_RUN_TERMINAL = 2, /* both, mixed, as on a screen */
    BP_RUN_OUTPUT = 3    /* both, mixed, because they are one file */
} bp_run_stream;

#define BP_RUN_STREAM_COUNT 4

/* The way of an output: from our end of the command's pipe or terminal to our own descriptor. */
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

/* Opens both ends. On failure close both. Errors: IO. */
bugpack_status bp_run_pipes_open(bp_run_pipes *pipes, bugpack_error *error);

/* Closes our ends, but the terminal. */
void bp_run_pipes_close_ours(bp_run_pipes *pipes);

/* Closes the command's ends. */
void bp_run_pipes_close_theirs(bp_run_pipes *pipes);

#endif
