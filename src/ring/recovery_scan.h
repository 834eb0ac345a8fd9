/*
 * Looking for frames in a file that may be anything, with pread alone.
 */
#ifndef BP_RING_RECOVERY_SCAN_H
#define BP_RING_RECOVERY_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/frame.h"

#define BP_RECOVERY_WINDOW_BYTES (256u * 1024)

typedef struct bp_recovery_scan {
    int fd;
    uint64_t capacity, seed;
    /* What the header says is in use; only a hint, because a page of the file may be older than
     * another one when the power went. `has_hint` is false when it cannot be true. */
    bool has_hint;
    uint64_t head_offset, free_bytes;
    uint64_t refused_count;
    /* How many more bytes may be read for frames that turn out to be none, so that a file full of
     * forged beginnings costs no more than a few turns of the ring. */
    uint64_t patience_bytes;
    uint64_t window_offset;
    size_t window_bytes;
    unsigned char *window;
} bp_recovery_scan;

/* CORRUPT when the file is no ring of this version, NO_MEMORY. On success to be closed. */
bugpack_status bp_recovery_open(bp_recovery_scan *scan, int fd, bugpack_error *error);
void bp_recovery_close(bp_recovery_scan *scan);

/* Forgets what was read, before a second pass. */
void bp_recovery_restart(bp_recovery_scan *scan);

/* The size of the whole and undamaged frame at `offset`, and its record; 0 when there is none. */
uint64_t bp_recovery_frame(bp_recovery_scan *scan, uint64_t offset, bp_ring_record *ret_record);
bool bp_recovery_is_pad(bp_recovery_scan *scan, uint64_t offset);

/* The end of the free space that `offset` lies in, or `offset`. */
uint64_t bp_recovery_skip_free(const bp_recovery_scan *scan, uint64_t offset);

/* Whether the word at `offset`, which belongs to no frame, should have. */
bool bp_recovery_is_damage(bp_recovery_scan *scan, uint64_t offset);

/* Gives record, payload and padding to the sink; returns what the sink returned. */
bugpack_status bp_recovery_give(bp_recovery_scan *scan, uint64_t offset,
                                const bp_ring_record *record, bp_sink *sink, void *context);

#endif
