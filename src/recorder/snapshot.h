/*
 * What was recorded, up to one instant: from a living session's rings or from a dead one's files.
 * The same artefacts are written from both.
 */
#ifndef BP_RECORDER_SNAPSHOT_H
#define BP_RECORDER_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/temp_file.h"
#include "recorder/traffic.h"
#include "ring/ring.h"

/* One ring's records. */
typedef struct bp_snapshot_part {
    bool is_on;          /* false: this session keeps no such ring */
    bugpack_error error; /* status OK: the records are here */
    bp_temp_file records;
    bp_ring_view view;
    char loss_reason[256]; /* why it would not have outlived the host; "" when it would */
} bp_snapshot_part;

typedef struct bp_snapshot {
    const bp_cancel_token *token; /* borrowed; of what is still to be written from it; NULL: none */
    uint64_t wall_offset_ns;      /* wall time = monotonic time + this */
    bp_snapshot_part log, notifications, history;
    bool has_traffic;
    bugpack_error traffic_error; /* the first that a channel met */
    char traffic_loss_reason[256];
    char traffic_note[160]; /* whose traffic this is, for the ledger; "" when of all */
    size_t channel_count;
    bp_traffic_snapshot channels[BUGPACK_CHANNEL_MAX];
} bp_snapshot;

void bp_snapshot_release(bp_snapshot *snapshot);

/* What its spools take, in bytes. */
uint64_t bp_snapshot_bytes(const bp_snapshot *snapshot);

/* Whether every ring could be copied. */
bool bp_snapshot_is_whole(const bp_snapshot *snapshot);

/* How many descriptors they hold. */
unsigned bp_snapshot_fds(const bp_snapshot *snapshot);

#endif
