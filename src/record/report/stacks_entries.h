/*
 * stacks.json and stacks.txt, of a process that runs and of one that crashed.
 */
#ifndef BP_REPORT_STACKS_ENTRIES_H
#define BP_REPORT_STACKS_ENTRIES_H

#include "model/stacks.h"
#include "report/writer.h"

/* Prints the one entry into `json`, with a note of how many threads have a stack and what is
 * missing, and the other into `text`. NO_MEMORY, LIMIT of the buffers. */
bugpack_status bp_stacks_write(const bp_stacks *stacks, bugpack_writer *json, bp_buffer *text,
                               bugpack_error *error);

#endif
