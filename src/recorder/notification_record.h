/*
 * The records of notifications. Other processes and later versions read them.
 */
#ifndef BP_RECORDER_NOTIFICATION_RECORD_H
#define BP_RECORDER_NOTIFICATION_RECORD_H

#include <stdint.h>

#include <bugpack/notify.h>

/* The tags: a whole notification, or its header alone, for a repetition. */
#define BP_NOTIFICATION_WHOLE 1u
#define BP_NOTIFICATION_REPEATED 2u

/*
 * Every record has the sum so far, so the newest one of an id is enough. A whole one is followed by
 * source and text, without a NUL.
 */
typedef struct bp_notification_header {
    uint64_t id; /* from 1, in the order of the first occurrence */
    uint64_t first_ns, last_ns;
    uint32_t count;
    uint16_t text_bytes;
    uint8_t source_bytes;
    uint8_t level; /* with BP_NOTIFICATION_CUT when source or text were longer */
} bp_notification_header;

#define BP_NOTIFICATION_CUT 0x80u

#define BP_NOTIFICATION_BODY_BYTES (BUGPACK_CHANNEL_MAX_BYTES + BUGPACK_NOTIFICATION_MAX_BYTES)

#endif
