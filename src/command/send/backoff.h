/*
 * When a report that did not arrive is tried again. Pure arithmetic, in seconds.
 */
#ifndef BP_SEND_BACKOFF_H
#define BP_SEND_BACKOFF_H

#include <stdint.h>

enum {
    BP_BACKOFF_FIRST_SECS = 15 * 60,
    BP_BACKOFF_LAST_SECS = 8 * 3600,
    /* Bounds of what a server asks for. */
    BP_RETRY_AFTER_MIN_SECS = 60,
    BP_RETRY_AFTER_MAX_SECS = 24 * 3600
};

/*
 * The time to wait after so many failed attempts, from 1: between 15 and 30 minutes after the first
 * one, twice that after each further one, at most between 4 and 8 hours. `random` chooses within
 * that, so that many machines do not come back at one instant after a failure of the server.
 */
uint64_t bp_backoff_secs(uint32_t attempt_count, uint32_t random);

/* The seconds that a server asks for by Retry-After (RFC 9110, 10.2.3), within the bounds above; 0
 * stays 0, which is none. */
uint64_t bp_backoff_bound(uint64_t retry_after_secs);

#endif
