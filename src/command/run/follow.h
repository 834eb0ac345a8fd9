/*
 * Following a log while it grows: a file from its end, through rotations, or what a program prints.
 */
#ifndef BP_RUN_FOLLOW_H
#define BP_RUN_FOLLOW_H

#include <stdbool.h>

#include <bugpack/error.h>

#include "recorder/line_splitter.h"

typedef struct bp_follow bp_follow;

/*
 * A regular file. What it has now is passed over. One that is missing is read from its beginning
 * once it is there, and so is one that takes its name, or that is truncated: unless it is longer
 * again by the next look. `path` is copied. Errors: IO, DENIED, NO_MEMORY.
 */
bugpack_status bp_follow_file(const char *path, bp_line_taker *take, void *context,
                              bp_follow **ret_follow, bugpack_error *error);

/* Follows the output of a program, which is searched for in PATH and inherits only our standard
 * error. Errors: IO, NO_MEMORY. */
bugpack_status bp_follow_program(const char *const *arguments, bp_line_taker *take, void *context,
                                 bp_follow **ret_follow, bugpack_error *error);

/* To poll: of a program; -1 for a file, which is to be looked at every so often. */
int bp_follow_fd(const bp_follow *follow);

/* Gives the lines that have come. False: the program has ended. */
bool bp_follow_look(bp_follow *follow);

/* Ends the program. NULL is fine. */
void bp_follow_close(bp_follow *follow);

#endif
