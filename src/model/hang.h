/*
 * hang.json: a thread that has not beaten its watchdog for the limit.
 */
#ifndef BP_MODEL_HANG_H
#define BP_MODEL_HANG_H

#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/log.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "platform/thread.h"

typedef struct bp_hang {
    char watchdog[BUGPACK_CHANNEL_MAX_BYTES + 1];
    char thread[BP_THREAD_NAME_BYTES]; /* "": not known */
    uint64_t tid;
    uint64_t limit_ns;
    uint64_t last_beat_ns;     /* monotonic */
    uint64_t silent_ns;        /* how much of the time since then counts */
    uint64_t number;           /* 1 for the first hang of this watchdog */
    uint64_t suppressed_count; /* hangs of the session without a report since the last one */
    bp_instant seen;           /* when it was noticed */
} bp_hang;

/* Appends hang.json. */
bugpack_status bp_hang_print(const bp_hang *hang, bp_buffer *out, bugpack_error *error);

#endif
