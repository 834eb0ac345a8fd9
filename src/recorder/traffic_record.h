/*
 * The records of a channel's rings, and reading them from a temporary file without holding whole
 * messages in memory. Recovery reads them too, also of a later version.
 */
#ifndef BP_RECORDER_TRAFFIC_RECORD_H
#define BP_RECORDER_TRAFFIC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/temp_file.h"
#include "recorder/traffic.h"

/*
 * The tags. The payload of a message is a bp_traffic_header, the type's name and the bytes that
 * were kept. A pinned message begins with eight bytes more: its sequence number in the other ring,
 * which identifies messages that are in both.
 */
#define BP_TRAFFIC_TAG_MESSAGE 1u
#define BP_TRAFFIC_TAG_PIN 2u

typedef struct bp_traffic_header {
    uint64_t original_bytes;
    uint32_t type;
    uint8_t direction;
    uint8_t name_bytes;
    uint16_t cuts; /* what shortened it: bits 1 << bp_traffic_cut; 0: unknown or nothing */
} bp_traffic_header;

#define BP_TRAFFIC_NAME_MAX_BYTES 32u

/* A message in a temporary file. */
typedef struct bp_traffic_record {
    uint64_t sequence; /* in the ring of messages, also for a pinned one */
    uint64_t monotonic_ns;
    uint64_t original_bytes; /* at least byte_count */
    unsigned direction;
    uint32_t type;
    unsigned cuts; /* as in bp_traffic_header */
    size_t name_bytes;
    char name[BP_TRAFFIC_NAME_MAX_BYTES]; /* of the type; any bytes */
    uint64_t bytes_offset;                /* of the kept bytes in the file */
    uint64_t byte_count;
} bp_traffic_record;

/* A piece of a file in memory. Nothing but the file is set: empty. */
#define BP_TRAFFIC_WINDOW_BYTES 16384u
typedef struct bp_traffic_window {
    const bp_temp_file *temp_file; /* borrowed, flushed */
    uint64_t start;
    size_t size;
    int system_errno; /* the first failed read; 0: none */
    unsigned char bytes[BP_TRAFFIC_WINDOW_BYTES];
} bp_traffic_window;

/* `byte_count` bytes at `offset`, valid until the next call; NULL past the end. */
const void *bp_traffic_window_see(bp_traffic_window *window, uint64_t offset, size_t byte_count);

/*
 * Reads the first valid message from the offset `from` of this part on, and moves `from` past it.
 * False at the end and where the file cannot be read (system_errno).
 */
bool bp_traffic_record_next(bp_traffic_window *window, bp_traffic_part *left,
                            bp_traffic_record *ret_record);

#endif
