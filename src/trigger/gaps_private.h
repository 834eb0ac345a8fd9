/*
 * How the table of gaps is laid out; for its own files only.
 */
#ifndef BP_TRIGGER_GAPS_PRIVATE_H
#define BP_TRIGGER_GAPS_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>

#include "trigger/gaps.h"

enum {
    bp_gap_slot_count = 8192, /* a power of two: half of it stays empty */
    bp_gap_shard_count = 8
};

/* What became of a key. It moves between the first two, and stays in the others. */
typedef enum bp_gap_state {
    BP_GAP_OPEN,    /* a occurrence may lead to a report */
    BP_GAP_PENDING, /* a report is on its way */
    BP_GAP_WRITTEN,
    BP_GAP_IGNORED,
    BP_GAP_GIVEN_UP /* its tries are used up */
} bp_gap_state;

/* Why the last occurrence of an open key led to no report. */
typedef enum bp_gap_hold {
    BP_GAP_HELD_BY_NOTHING,
    BP_GAP_HELD_OFF,
    BP_GAP_HELD_BY_CAP,
    BP_GAP_HELD_BY_CHANNEL_CAP
} bp_gap_hold;

/* What one shard knows of one key. */
typedef struct bp_gap_cell {
    atomic_uint_fast64_t count;
    atomic_uint_fast64_t last_wall_ns;
} bp_gap_cell;

typedef struct bp_gap_channel {
    uint32_t key_count, unknown_count; /* under the mutex */
    atomic_uint place_count;           /* pending and written; changed under the mutex */
    atomic_bool is_told;
} bp_gap_channel;

struct bp_gap {
    char text[BUGPACK_GAP_KEY_MAX_BYTES + 1];
    uint8_t bytes, channel_bytes;
    uint64_t first_wall_ns;
    bp_gap_channel *channel;
    /* Keys without room count here: of a channel's unknown ones, of a channel, of all. */
    atomic_bool takes[3];
    atomic_uint state;     /* a bp_gap_state; changed under the mutex */
    atomic_uint hold;      /* a bp_gap_hold */
    atomic_uint try_count; /* failed reports; changed under the mutex */
};

struct bp_gaps {
    bp_gaps_options options;
    uint64_t seed; /* of the hash, so that nobody can aim at one slot */
    char cap_reason[80], channel_cap_reason[80];
    atomic_uint place_count; /* pending and written */
    atomic_bool is_told;
    atomic_uint gap_count; /* rows that are there; only grows */
    pthread_mutex_t mutex; /* held for a row to be added or a place to change hands */
    uint32_t pending_count, written_count;
    /* 48 bits of a row's hash and, below, its index and 1; 0: empty, which is where a search ends.
     */
    atomic_uint_fast64_t slots[bp_gap_slot_count];
    bp_gap gaps[BUGPACK_GAP_KEYS_MAX];
    bp_gap_channel channels[BUGPACK_GAP_KEYS_MAX]; /* that of a channel's first row is used */
    bp_gap_cell cells[bp_gap_shard_count][BUGPACK_GAP_KEYS_MAX];
};

/* Whether the gap may have a report now, and takes its place if so. */
bp_gap_occurrence bp_gaps_take_place(bp_gaps *gaps, bp_gap *gap, bool is_enabled);

/* Why a row has no report: "" when it has one, or needs no reason. Borrowed from the table. */
const char *bp_gap_reason(const bp_gaps *gaps, const bp_gap *gap);

#endif
