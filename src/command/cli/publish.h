/*
 * What happens to a report before it is written: --review; under sudo it is given to who called it;
 * and it may be read instead.
 */
#ifndef BP_CLI_PUBLISH_H
#define BP_CLI_PUBLISH_H

#include <stdbool.h>

#include <bugpack/report.h>

/* For before_publish of options, with any context; NULL where there is nothing to do. */
bugpack_before_publish_callback *bp_cli_publish_call(bool is_reviewed);

/* A zip for who reads it. */
typedef struct bp_cli_taken {
    bool is_reviewed;
    bool is_kept; /* it gets its name, too */
    int fd;       /* open for reading, the caller's to close; -1: there is none yet */
} bp_cli_taken;

/* Fills a bp_cli_taken, which is its context. CANCELLED unless the zip is kept. */
bugpack_before_publish_callback bp_cli_publish_take;

#endif
