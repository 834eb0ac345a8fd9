/*
 * When to give up a piece of work: at a deadline, or when it is cancelled.
 */
#ifndef BP_BASE_CANCEL_H
#define BP_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

/* All zero, or NULL in place of one: never. The flag may be set on any thread; the work checks the
 * token between two pieces. */
typedef struct bp_cancel_token {
    uint64_t deadline_ns; /* monotonic; 0 for none */
    atomic_bool is_cancelled;
} bp_cancel_token;

/* True if it is time to give up. Once true, it stays so. Any thread; costs a load, and with a
 * deadline a reading of the clock. */
bool bp_cancel_is_due(const bp_cancel_token *token);

/* The same as a status with its sentence: OK, CANCELLED or TIMEOUT. */
bugpack_status bp_cancel_check(const bp_cancel_token *token, bugpack_error *error);

/* The same without the deadline. */
bugpack_status bp_cancel_check_flag(const bp_cancel_token *token, bugpack_error *error);

#endif
