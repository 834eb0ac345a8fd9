/*
 * Work in a child process of the command (base/aside.h).
 */
#ifndef BP_RUN_ASIDE_H
#define BP_RUN_ASIDE_H

#include "base/aside.h"

bp_aside_runner bp_run_aside;

/* The time without an answer after which a file system is given up. */
enum { BP_RUN_STALL_MS = 10000 };

/* True if this `work` of a bp_aside, which has no answer, was given up: it would have kept this
 * program for ever. */
bool bp_run_stalls(void (*work)(const void *context, void *no_answer, int out_fd),
                   const void *context);

#endif
