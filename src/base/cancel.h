/*
 * When to give up a piece of work: at a deadline, or because it was cancelled.
 */
#ifndef BP_BASE_CANCEL_H
#define BP_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

/*
 * All zero: never. Whoever works asks between two pieces; whoever cancels sets the flag, on
 * any thread, and wakes what waits. Where NULL is given instead of one, the answer is never.
 */
typedef struct bp_cancel_token {
    uint64_t deadline_ns; /* monotonic; 0 for none */
    atomic_bool is_cancelled;
} bp_cancel_token;

/* Whether it is time to give up. Once true, it stays so. Any thread; costs a load, and with a
 * deadline a reading of the clock. */
bool bp_cancel_is_due(const bp_cancel_token *token);

/* The same as a status with its sentence: OK, CANCELLED or TIMEOUT. */
bugpack_status bp_cancel_check(const bp_cancel_token *token, bugpack_error *error);

#endif
