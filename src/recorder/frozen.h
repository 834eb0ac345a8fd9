/*
 * What was recorded, up to one instant: from a living session's rings or from a dead one's files.
 * The same artefacts are written from both.
 */
#ifndef BP_RECORDER_FROZEN_H
#define BP_RECORDER_FROZEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/spool.h"
#include "recorder/traffic.h"
#include "ring/ring.h"

/* One ring's records. */
typedef struct bp_frozen_part {
    bool is_on;          /* false: this session keeps no such ring */
    bugpack_error error; /* status OK: the records are here */
    bp_spool records;
    bp_ring_view view;
    char loss_reason[256]; /* why it would not have outlived the host; "" when it would */
} bp_frozen_part;

typedef struct bp_frozen {
    const bp_halt *halt;     /* borrowed; of what is still to be written from it; NULL: none */
    uint64_t wall_offset_ns; /* wall time = monotonic time + this */
    bp_frozen_part log, notifications, history;
    bool has_traffic;
    bugpack_error traffic_error; /* the first that a channel met */
    char traffic_loss_reason[256];
    char traffic_note[160]; /* whose traffic this is, for the ledger; "" when of all */
    size_t channel_count;
    bp_traffic_frozen channels[BUGPACK_CHANNEL_MAX];
} bp_frozen;

void bp_frozen_release(bp_frozen *frozen);

/* What its spools take, in bytes. */
uint64_t bp_frozen_bytes(const bp_frozen *frozen);

/* Whether every ring could be copied. */
bool bp_frozen_is_whole(const bp_frozen *frozen);

/* How many descriptors they hold. */
unsigned bp_frozen_fds(const bp_frozen *frozen);

#endif
