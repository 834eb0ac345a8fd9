/*
 * The signals that the command got from its user: a key, a signal to this program, a hang-up, or
 * SIGPIPE for a reader that went away. A shell that ends sends a stopped job several.
 */
#ifndef BP_RUN_PASSED_ON_H
#define BP_RUN_PASSED_ON_H

#include <stdbool.h>
#include <stdint.h>

#include "run/child.h"

typedef struct bp_run_passed_on {
    uint64_t numbers; /* a bit for each */
    uint64_t when_ns; /* monotonic, of the newest that asks to end; 0: none */
} bp_run_passed_on;

/* Adds one. SIGUSR2 and SIGALRM ask nobody to end. */
void bp_run_passed_on_add(bp_run_passed_on *passed_on, int number, uint64_t now_ns);

/*
 * Whether these signals explain an end at `now_ns`: a death by one, or the status that a shell
 * makes of one, at any time; any other status within ten seconds, because a program may take so
 * long to end.
 */
bool bp_run_passed_on_explains(bp_run_passed_on passed_on, const bp_run_end *end, uint64_t now_ns);

#endif
