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
    int value; /* the status, or the signal's number */
} bp_run_end;

/* What a shell adds to the number of a signal that ended its command, as its own status. */
#define BP_RUN_STATUS_OF_SIGNAL 128

/* The last signal that the command got from its user: a key, a signal to this program, a hang-up,
 * or SIGPIPE for a reader that went away. All zero: none. */
typedef struct bp_run_passed_on {
    int number;
    uint64_t when_ns; /* monotonic */
} bp_run_passed_on;

/*
 * Whether that signal explains an end at `now_ns`: a death by it, or the status that a shell makes
 * of it, at any time; any other status within ten seconds, because a program may take so long to
 * end. SIGUSR2 and SIGALRM ask nobody to end.
 */
bool bp_run_is_expected(bp_run_passed_on passed_on, const bp_run_end *end, uint64_t now_ns);

#endif
