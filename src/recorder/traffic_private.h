/*
 * What the files of a traffic channel share.
 */
#ifndef BP_RECORDER_TRAFFIC_PRIVATE_H
#define BP_RECORDER_TRAFFIC_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "recorder/traffic.h"

#define BP_TRAFFIC_CACHE_LINE 64
#define BP_TRAFFIC_RING_FRAME_BYTES 32 /* what a ring adds to a payload; see ring/ring.h */

/* What every message changes has cache lines of its own, and so has each channel. */
struct bp_traffic {
    bp_ring *ring, *pins;
    size_t kept_max;     /* bytes of one message: by limit, snap and ring */
    uint16_t kept_cut;   /* 1 << the bp_traffic_cut of a message that is longer */
    size_t pin_kept_max; /* the same in `pins` */
    bugpack_traffic_filter *filter;
    void *filter_context;
    unsigned char *filter_copy; /* kept_max bytes; NULL without a filter */
    bp_traffic_identity identity;
    pthread_mutex_t filter_mutex; /* of filter_copy */
    /* How much may still be pinned: message bytes in the upper half, bytes of `pins` in the lower.
     * 0 from when the opening is over. */
    _Alignas(BP_TRAFFIC_CACHE_LINE) _Atomic uint64_t pin_left;
    _Alignas(BP_TRAFFIC_CACHE_LINE) bp_ring_tally tallies[2]; /* by direction; amounts are bytes */
    _Atomic uint64_t cut_count;
};

#endif
