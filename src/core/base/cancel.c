#include "base/cancel.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"

static bool is_cancelled(const bp_cancel_token *token) {
    return atomic_load_explicit(&token->is_cancelled, memory_order_acquire);
}

bool bp_cancel_is_due(const bp_cancel_token *token) {
    return token != NULL &&
           (is_cancelled(token) ||
            (token->deadline_ns != 0 && bp_clock_monotonic_ns() >= token->deadline_ns));
}

bugpack_status bp_cancel_check_flag(const bp_cancel_token *token, bugpack_error *error) {
    return token != NULL && is_cancelled(token)
               ? bp_fail(error, BUGPACK_ERR_CANCELLED, "the report was cancelled")
               : BUGPACK_OK;
}

bugpack_status bp_cancel_check(const bp_cancel_token *token, bugpack_error *error) {
    bugpack_status status = bp_cancel_check_flag(token, error);
    return status == BUGPACK_OK && bp_cancel_is_due(token)
               ? bp_fail(error, BUGPACK_ERR_TIMEOUT, "the report was not done in time")
               : status;
}
