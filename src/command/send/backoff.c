#include "send/backoff.h"

#include <string.h>

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

uint64_t bp_backoff_retry_after(const char *text) {
    uint64_t secs = 0;
    text += strspn(text, " \t");
    size_t digits = strspn(text, "0123456789");
    if (digits == 0 || text[digits + strspn(text + digits, " \t\r\n")] != '\0') {
        return 0;
    }
    for (size_t i = 0; i < digits && secs <= BP_RETRY_AFTER_MAX_SECS; i++) {
        secs = 10 * secs + (uint64_t)(text[i] - '0');
    }
    if (secs < BP_RETRY_AFTER_MIN_SECS) {
        secs = BP_RETRY_AFTER_MIN_SECS;
    }
    return secs < BP_RETRY_AFTER_MAX_SECS ? secs : BP_RETRY_AFTER_MAX_SECS;
}
