/*
 * How a message lies in a channel's rings, and reading it back from a spool without holding it in
 * memory. What is written here is read by a recoverer, also of a later version.
 */
#ifndef BP_RECORDER_TRAFFIC_RECORD_H
#define BP_RECORDER_TRAFFIC_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/temp_file.h"
#include "recorder/traffic.h"

/*
 * The tags of ring records. A message's payload is a bp_traffic_header, the type's name and the
 * bytes that were kept. A pinned one has the sequence number that the message has in the other
 * ring, in eight bytes, before that: so it is known which messages stand in both.
 */
#define BP_TRAFFIC_TAG_MESSAGE 1u
#define BP_TRAFFIC_TAG_PIN 2u

typedef struct bp_traffic_header {
    uint64_t original_bytes;
    uint32_t type;
    uint8_t direction;
    uint8_t name_bytes;
    uint16_t cuts; /* what shortened it: 1 << a bp_traffic_cut each; 0 also where nobody noted it */
} bp_traffic_header;

#define BP_TRAFFIC_NAME_MAX_BYTES 32u

/* A message in a spool. */
typedef struct bp_traffic_record {
    uint64_t sequence; /* in the ring of messages, also of a pinned one */
    uint64_t monotonic_ns;
    uint64_t original_bytes; /* at least byte_count */
    unsigned direction;
    uint32_t type;
    unsigned cuts; /* as in bp_traffic_header */
    size_t name_bytes;
    char name[BP_TRAFFIC_NAME_MAX_BYTES]; /* of the type; any bytes */
    uint64_t bytes_offset;                /* where in the temp_file the kept bytes are */
    uint64_t byte_count;
} bp_traffic_record;

/* A piece of a spool in memory. Zeroed it is empty. */
#define BP_TRAFFIC_WINDOW_BYTES 16384u
typedef struct bp_traffic_window {
    const bp_temp_file *temp_file; /* borrowed, flushed */
    uint64_t start;
    size_t size;
    int system_errno; /* the first failed read; 0: none */
    unsigned char bytes[BP_TRAFFIC_WINDOW_BYTES];
} bp_traffic_window;

/* Looks at another spool from now on. */
void bp_traffic_window_move(bp_traffic_window *window, const bp_temp_file *temp_file);

/* `byte_count` bytes at `offset`, valid until the next call; NULL when they are not there. */
const void *bp_traffic_window_see(bp_traffic_window *window, uint64_t offset, size_t byte_count);

/*
 * The message whose ring record begins at `*offset`, or the next one that makes sense, and moves
 * `*offset` behind it. False at the end, and where the spool cannot be read (system_errno).
 */
bool bp_traffic_record_next(bp_traffic_window *window, uint64_t *offset,
                            bp_traffic_record *ret_record);

#endif
