#include "base/halt.h"

#include <stddef.h>

#include "base/clock.h"
#include "base/status.h"

static bool is_cancelled(const bp_halt *halt) {
    return atomic_load_explicit(&halt->is_cancelled, memory_order_acquire);
}

bool bp_halt_is_due(const bp_halt *halt) {
    return halt != NULL && (is_cancelled(halt) || (halt->deadline_ns != 0 &&
                                                   bp_clock_monotonic_ns() >= halt->deadline_ns));
}

bugpack_status bp_halt_check(const bp_halt *halt, bugpack_error *error) {
    if (!bp_halt_is_due(halt)) {
        return BUGPACK_OK;
    }
    if (is_cancelled(halt)) {
        return bp_fail(error, BUGPACK_ERR_CANCELLED, "the report was cancelled");
    }
    return bp_fail(error, BUGPACK_ERR_TIMEOUT, "the report was not done in time");
}
