#include "send/backoff.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"

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

/* "Sun, 06 Nov 1994 08:49:37 GMT", the one form of a date that is to be sent. */
static bool parse_date(const char *text, uint64_t *ret_secs) {
    static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";
    bp_civil_time at;
    char month[4];
    int end = 0;
    if (sscanf(text, "%*3[A-Za-z], %2u %3[A-Za-z] %4u %2u:%2u:%2u GMT%n", &at.day, month, &at.year,
               &at.hour, &at.minute, &at.second, &end) != 6 ||
        end == 0 || text[end] != '\0') {
        return false;
    }
    const char *found = strstr(months, month);
    bool is_in_range = at.year >= 1970 && at.day >= 1 && at.day <= 31 && at.hour < 24 &&
                       at.minute < 60 && at.second <= 60;
    if (found == NULL || (found - months) % 3 != 0 || !is_in_range) {
        return false;
    }
    at.month = (unsigned)(found - months) / 3 + 1;
    *ret_secs = bp_clock_secs(at);
    return true;
}

bool bp_backoff_parse_retry_after(const char *text, uint64_t now_secs, uint64_t *ret_secs) {
    uint64_t secs = 0, date;
    size_t digits = strspn(text, "0123456789");
    if (digits > 0 && text[digits] == '\0') {
        for (size_t i = 0; i < digits && secs <= BP_RETRY_AFTER_MAX_SECS; i++) {
            secs = 10 * secs + (uint64_t)(text[i] - '0');
        }
    } else if (parse_date(text, &date)) {
        secs = date > now_secs ? date - now_secs : 0;
    } else {
        return false;
    }
    if (secs < BP_RETRY_AFTER_MIN_SECS) {
        secs = BP_RETRY_AFTER_MIN_SECS;
    }
    *ret_secs = secs < BP_RETRY_AFTER_MAX_SECS ? secs : BP_RETRY_AFTER_MAX_SECS;
    return true;
}
