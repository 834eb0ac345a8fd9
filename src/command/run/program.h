/*
 * A program that a user asked to have in a report, and what it prints.
 */
#ifndef BP_RUN_PROGRAM_H
#define BP_RUN_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/child.h"

/* All borrowed. */
typedef struct bp_run_program {
    const char *const *arguments; /* the program, searched in PATH, to a NULL */
    bp_sink *sink;                /* gets what it prints; its failure ends the program */
    void *context;
    bool joins_error;       /* the sink gets what it prints to standard error, too */
    bp_child_limits limits; /* it is killed then */
} bp_run_program;

/* The end of a program. */
typedef struct bp_run_program_end {
    int wait_status;
    bool was_killed; /* by bp_run_program_run; false too where only its output did not end */
    bool has_printed;
    size_t said_bytes;
    char said[300]; /* the beginning of its standard error, as one line, unless it was joined */
} bp_run_program_end;

/*
 * Waits until the program, whose standard input is empty, has ended and its output was closed. It
 * has a process group of its own, so that no terminal's signal reaches it, and it cannot ask a
 * question there. The group is killed where the program does not end by itself.
 *
 * IO: it cannot be started; or what the sink returned. CANCELLED: it was killed. TIMEOUT: likewise,
 * or it had ended, and a process that it left behind had its output; `ret_end` is set.
 */
bugpack_status bp_run_program_run(const bp_run_program *program, bp_run_program_end *ret_end,
                                  bugpack_error *error);

/* IO, with what the program said, unless it has printed something and ended well. */
bugpack_status bp_run_program_judge(const bp_run_program *program, const bp_run_program_end *end,
                                    bugpack_error *error);

#endif
