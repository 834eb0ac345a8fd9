/*
 * What a command's descriptors will be, from before the fork until it is executed.
 */
#ifndef BP_RUN_PLUMBING_H
#define BP_RUN_PLUMBING_H

#include <stdbool.h>

#include "run/child.h"

/* -1: not there. The command's standard descriptors are inherited where `standard` has -1. */
typedef struct bp_run_plumbing {
    char **arguments;
    bool ignores_pipe;
    bool is_controlled; /* on a pseudo-terminal of its own, with a monitor */
    int standard[3];
    int slave;               /* of the controlling pseudo-terminal */
    int go_fd;               /* a byte: execute; an end: give up */
    int failure_fd;          /* gets a 0 when it waits, and an errno when that fails */
    int ours[8];             /* the ends that are the first process's alone */
    bp_run_terminal outside; /* the terminal to restore */
} bp_run_plumbing;

/* Chooses and opens what the command's descriptors will be. Errors: IO. */
bugpack_status bp_run_plumbing_open(bp_run_plumbing *plumbing, bp_run_child *child,
                                    bugpack_error *error);

/* In a forked process: closes the ends that are the first one's. */
void bp_run_plumbing_close_ours(const bp_run_plumbing *plumbing);

/* Closes the command's ends. */
void bp_run_plumbing_close_theirs(bp_run_plumbing *plumbing);

/* In the forked process: waits for the word, and becomes the command. */
_Noreturn void bp_run_plumbing_execute(const bp_run_plumbing *plumbing);

#endif
