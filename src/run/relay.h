/*
 * The loop of `bugpack run`: bytes both ways, window size, signals, and stopping together, until
 * the command has ended and all that it wrote is passed on.
 */
#ifndef BP_RUN_RELAY_H
#define BP_RUN_RELAY_H

#include <stddef.h>

#include <bugpack/error.h>

#include "run/child.h"
#include "run/hotkey.h"

/* Who asked for a report. */
typedef enum bp_run_asker { BP_RUN_ASKED_BY_KEY, BP_RUN_ASKED_BY_SIGNAL } bp_run_asker;

/* Called on the thread of the relay, which passes nothing on meanwhile. */
typedef struct bp_run_calls {
    void (*output)(void *context, bp_run_stream stream, const char *bytes, size_t byte_count);
    void (*report)(void *context, bp_run_asker asker);
    void (*started)(void *context); /* the process has just become the command */
    void *context;
} bp_run_calls;

typedef struct bp_run_result {
    bp_run_end end;
    bool is_lost;       /* the monitor was killed: how the command ended is not known */
    int passed_on_last; /* the last ending signal that was passed on to the command; 0: none */
} bp_run_result;

/*
 * Runs from just before the command is let go (`start` does that, and its failure ends it) to its
 * end. Every signal does what it did before when this returns, and the terminal is restored.
 * What descendants write after the command has ended, beyond what waits in the pipes by then, is
 * not waited for. `hotkey` is changed. Errors: those of `start`, IO, NO_MEMORY.
 */
bugpack_status bp_run_relay(bp_run_child *child, bp_hotkey *hotkey, const bp_run_calls *calls,
                            bp_run_result *ret_result, bugpack_error *error);

#endif
