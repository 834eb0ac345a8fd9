/*
 * What led to a report by itself. disconnect-cause.json: why a channel closed, and the state of all
 * channels at that time. hang.json: a thread that has not beaten its watchdog for the limit.
 */
#ifndef BP_MODEL_DISCONNECT_H
#define BP_MODEL_DISCONNECT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/log.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "platform/thread.h"

/* One channel since it was opened; the arrays are indexed by bugpack_direction. */
typedef struct bp_channel_activity {
    bool is_closed; /* the host has closed it */
    char name[72];  /* any bytes */
    uint64_t message_count[2], byte_count[2];
    uint64_t last_ns[2]; /* monotonic; 0: never */
} bp_channel_activity;

/* Strings are borrowed and may hold any bytes; NULL and "" are left out, except for `channel`. */
typedef struct bp_loss {
    const char *channel, *error_text, *error_kind;
    bool keepalive_fired;
    bp_instant at;
} bp_loss;

typedef struct bp_disconnect {
    bp_loss first;
    const bp_loss *others; /* borrowed: those without a report of their own that came meanwhile */
    size_t other_count;
    uint64_t cooldown_ms;                /* no further report for so long */
    uint64_t suppressed_count;           /* disconnects without a report since the last one */
    const bp_channel_activity *channels; /* borrowed */
    size_t channel_count;
} bp_disconnect;

/* Appends disconnect-cause.json. */
bugpack_status bp_disconnect_print(const bp_disconnect *disconnect, bp_buffer *out,
                                   bugpack_error *error);

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
