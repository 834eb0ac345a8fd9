/*
 * The loop of `bugpack run`: bytes both ways, window size, signals, and stopping together, until
 * the command has ended and all that it wrote is passed on.
 */
#ifndef BP_RUN_RELAY_H
#define BP_RUN_RELAY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "run/child.h"
#include "run/keyboard.h"

/* Called on the thread of the relay, which passes nothing on meanwhile. */
typedef struct bp_run_calls {
    /* One line of output, without its end; any bytes. A line longer than
     * BUGPACK_LOG_MESSAGE_MAX_BYTES comes in parts (bugpack/log.h), as does one unfinished at a
     * report. */
    void (*line)(void *context, bp_run_stream stream, const char *line, size_t line_bytes,
                 unsigned part);
    void (*wrote)(void *context);   /* output was read, also less than a line */
    void (*report)(void *context);  /* a report was asked for by the key or a signal */
    void (*started)(void *context); /* the process has just become the command */
    bool rings;                     /* the terminal, when the key was pressed */
    void *context;
} bp_run_calls;

/* Output that could not be passed on. */
typedef struct bp_run_loss {
    bp_run_stream stream;
    uint64_t bytes;
    int system_errno; /* of the last failure */
} bp_run_loss;

typedef struct bp_run_result {
    bp_run_end end;
    bool is_lost;     /* the monitor was killed: how the command ended is not known */
    bool is_expected; /* it ended because of a signal that was passed on from the user */
    bp_run_loss losses[2];
    size_t loss_count;
} bp_run_result;

/*
 * Lets the command go and returns when it has ended. Every signal then does what it did before, and
 * the terminal is restored. What descendants write after the end of the command, beyond what is in
 * the pipes by then, is not waited for. `hotkey` is changed. Errors: those of bp_run_child_let_go,
 * IO, NO_MEMORY.
 */
bugpack_status bp_run_relay(bp_run_child *child, bp_hotkey *hotkey, const bp_run_calls *calls,
                            bp_run_result *ret_result, bugpack_error *error);

#endif
