#include "base/cancel.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"

bool bp_cancel_is_due(const bp_cancel_token *token) {
    return token != NULL &&
           (atomic_load(&token->is_cancelled) ||
            (token->deadline_ns != 0 && bp_clock_monotonic_ns() >= token->deadline_ns));
}

bugpack_status bp_cancel_check_flag(const bp_cancel_token *token, bugpack_error *error) {
    return token != NULL && atomic_load(&token->is_cancelled)
               ? bp_fail(error, BUGPACK_ERR_CANCELLED, "the report was cancelled")
               : BUGPACK_OK;
}

bugpack_status bp_cancel_check(const bp_cancel_token *token, bugpack_error *error) {
    bool is_due = bp_cancel_is_due(token); /* read first: it may be cancelled meanwhile */
    bugpack_status status = bp_cancel_check_flag(token, error);
    return status == BUGPACK_OK && is_due
               ? bp_fail(error, BUGPACK_ERR_TIMEOUT, "the report was not done in time")
               : status;
}
