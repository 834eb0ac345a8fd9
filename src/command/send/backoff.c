#include "send/backoff.h"

uint64_t bp_backoff_secs(uint32_t attempt_count, uint32_t random) {
    uint64_t shortest = BP_BACKOFF_FIRST_SECS;
    for (uint32_t i = 1; i < attempt_count && shortest < BP_BACKOFF_LAST_SECS / 2; i++) {
        shortest *= 2;
    }
    if (shortest > BP_BACKOFF_LAST_SECS / 2) {
        shortest = BP_BACKOFF_LAST_SECS / 2;
    }
    return shortest + ((uint64_t)random * shortest >> 32);
}

uint64_t bp_backoff_bound(uint64_t retry_after_secs) {
    if (retry_after_secs == 0 || retry_after_secs > BP_RETRY_AFTER_MAX_SECS) {
        return retry_after_secs == 0 ? 0 : BP_RETRY_AFTER_MAX_SECS;
    }
    return retry_after_secs < BP_RETRY_AFTER_MIN_SECS ? BP_RETRY_AFTER_MIN_SECS : retry_after_secs;
}
