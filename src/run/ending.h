/*
 * Whether a command ended because its user wanted it to.
 */
#ifndef BP_RUN_ENDING_H
#define BP_RUN_ENDING_H

#include <stdbool.h>
#include <stdint.h>

/* How a command ended: with an exit status, or by a signal. */
typedef struct bp_run_end {
    bool is_signal;
    bool has_core;
    int value;       /* the status, or the signal's number */
    uint64_t cpu_ns; /* that it used, with the children it waited for; 0: not known */
} bp_run_end;

/* What a shell adds to the number of a signal that ended its command, as its own status. */
#define BP_RUN_STATUS_OF_SIGNAL 128

/* The signals that the command got from its user: a key, a signal to this program, a hang-up, or
 * SIGPIPE for a reader that went away. A shell that ends sends a stopped job several. */
typedef struct bp_run_passed_on {
    uint64_t numbers; /* a bit for each */
    uint64_t when_ns; /* monotonic, of the newest that asks to end; 0: none */
} bp_run_passed_on;

/* Adds one. SIGUSR2 and SIGALRM ask nobody to end. */
void bp_run_pass_on(bp_run_passed_on *passed_on, int number, uint64_t now_ns);

/*
 * Whether these signals explain an end at `now_ns`: a death by one, or the status that a shell
 * makes of one, at any time; any other status within ten seconds, because a program may take so
 * long to end.
 */
bool bp_run_is_expected(bp_run_passed_on passed_on, const bp_run_end *end, uint64_t now_ns);

#endif
