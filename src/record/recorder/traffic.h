/*
 * One traffic channel: messages into its ring on the host's threads, pcap frames out of it on ours.
 */
#ifndef BP_RECORDER_TRAFFIC_H
#define BP_RECORDER_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/sink.h"
#include "base/temp_file.h"
#include "recorder/pcap.h"
#include "redact/redactor.h"
#include "ring/ring.h"

typedef struct bp_traffic bp_traffic;

/* The identity of a channel for recovery, written into its rings. Fixed size. */
typedef struct bp_traffic_identity {
    char name[64 + 8]; /* NUL-terminated, any bytes */
    uint8_t host_is_server, padding[3];
    uint16_t host_port, peer_port; /* never 0 here */
    uint32_t snap_bytes;
    uint32_t number; /* in its session, from 0; part of its addresses */
    uint32_t has_pins;
    uint32_t payload; /* a bugpack_payload */
    uint64_t check;   /* hash of the fields above */
} bp_traffic_identity;

/* True if the bytes of a file are the identity of this channel. */
bool bp_traffic_identity_is_whole(const bp_traffic_identity *identity, uint32_t number);

/* Chooses ports where the options have 0. */
void bp_traffic_identity_init(bp_traffic_identity *identity, const char *name, uint32_t number,
                              const bugpack_channel_options *options);

/*
 * The size of a ring of pins: one message of `pin_bytes`, or 256 small ones with their metadata. In
 * a smaller ring the opening ends sooner.
 */
size_t bp_traffic_pins_ring_bytes(uint64_t pin_bytes);

/*
 * A channel over two rings: the messages, and the pinned opening messages, which it stops writing
 * before anything would be evicted. `pins` is empty and may be NULL. Takes ownership of the rings
 * on success. `owner` is the session.
 */
bugpack_status bp_traffic_new(const bp_traffic_identity *identity,
                              const bugpack_channel_options *options, const void *owner,
                              bp_ring *ring, bp_ring *pins, bp_traffic **ret_traffic,
                              bugpack_error *error);

/*
 * Refuses messages from now on, waits until the filter has returned, and gives back the memory that
 * no message is in. Returns what the rings take now. Idempotent. Other threads may be inside or
 * come later.
 */
size_t bp_traffic_seal(bp_traffic *traffic);

/* Refuses messages from now on and frees all memory but about 1 KiB, and 128 bytes for each lane.
 * Other threads may be inside or come later; the filter may still be called, until bp_traffic_seal
 * or bp_traffic_end_filter. */
void bp_traffic_close(bp_traffic *traffic);
void bp_traffic_end_filter(bp_traffic *traffic);

/* Frees the rings too. No other thread may be inside. NULL is fine. */
void bp_traffic_free(bp_traffic *traffic);

const bp_traffic_identity *bp_traffic_identity_of(const bp_traffic *traffic);

/* Its rings, borrowed; pins may be NULL. */
bp_ring *bp_traffic_ring(const bp_traffic *traffic);
bp_ring *bp_traffic_pins(const bp_traffic *traffic);

/* Hands its rings to the caller, who frees them; with NULL the ring of messages stays. Nobody may
 * be inside. */
void bp_traffic_take_rings(bp_traffic *traffic, bp_ring **ret_ring, bp_ring **ret_pins);

/*
 * Records one message: all of it, or the beginning when it exceeds 16 MiB or a quarter of the ring.
 * With `bytes` NULL the message is counted and none of its bytes are kept. Any thread.
 */
void bp_traffic_append(bp_traffic *traffic, bugpack_direction direction, uint32_t type,
                       const char *type_name, const void *bytes, size_t byte_count);

/*
 * How many bytes at the front of a message the host has given for a report: what the channel keeps
 * of one, and none where a filter may change them.
 */
size_t bp_traffic_plain_max(const bp_traffic *traffic);

/* Bytes (before any cut) and messages per direction since the channel was opened. */
typedef struct bp_traffic_totals {
    uint64_t message_count[2], byte_count[2]; /* by bugpack_direction */
    uint64_t last_ns[2];                      /* monotonic, of the newest; 0: never */
} bp_traffic_totals;
void bp_traffic_count(const bp_traffic *traffic, bp_traffic_totals *ret_totals);

/* The records of a ring in a file that several rings share. */
typedef struct bp_traffic_part {
    uint64_t from, to;
} bp_traffic_part;

/* A channel at an instant, from a running session's rings or a dead one's files. */
typedef struct bp_traffic_snapshot {
    bp_traffic_identity identity;
    bp_traffic_part messages, pins;
    bp_ring_view messages_view, pins_view;
    uint64_t wall_offset_ns; /* wall time = monotonic time + this */
} bp_traffic_snapshot;

/* Appends the records of both rings to an open file (bp_ring_copy). Any thread. */
bugpack_status bp_traffic_take_snapshot(bp_traffic *traffic, uint64_t until_ns,
                                        uint64_t wall_offset_ns, bp_temp_file *records,
                                        bp_traffic_snapshot *ret_snapshot, bugpack_error *error);

/* Reasons why a message was shortened; more than one may apply. */
typedef enum bp_traffic_cut {
    BP_TRAFFIC_CUT_SNAP,   /* the channel's snap length */
    BP_TRAFFIC_CUT_FILTER, /* its filter kept fewer bytes */
    BP_TRAFFIC_CUT_LIMIT,  /* 16 MiB, or a quarter of the ring */
    BP_TRAFFIC_CUT_ABSENT, /* the host gave no bytes */
    BP_TRAFFIC_CUT_PIN,    /* evicted from the ring, and only its beginning was pinned */
    BP_TRAFFIC_CUT_FLAG,   /* the channel records no payload */
    BP_TRAFFIC_CUT_COUNT
} bp_traffic_cut;

/* The manifest's counts of a pcap. */
typedef struct bp_traffic_extent {
    uint64_t message_count; /* in the pcap */
    uint64_t pinned_count;  /* of these, evicted from the ring and only pinned */
    uint64_t missing_count; /* older than the newest one in the pcap, and evicted */
    uint64_t cut_count;     /* of those in the pcap, not whole: */
    uint64_t cut_counts[BP_TRAFFIC_CUT_COUNT]; /* why, by bp_traffic_cut */
    uint64_t from_wall_ns, to_wall_ns;         /* 0 when there is none */
} bp_traffic_extent;

/*
 * Prints traffic.pcap of these channels, whose records are in one file, merged by time, which never
 * runs backwards. A message that is in pins and ring appears once. Where messages are missing after
 * the pinned ones, TCP's numbers go on without a gap, so that a dissector keeps its state; the
 * manifest says so. Secrets in messages are overwritten, except of exact channels, unless
 * `redactor` is NULL. Memory: 128 KiB, 24 KiB for each channel that was open at one time, and 16
 * bytes for each pinned message.
 */
bugpack_status bp_traffic_print_pcap(bp_temp_file *records, const bp_traffic_snapshot *channels,
                                     size_t channel_count, bp_redactor *redactor, bp_sink *sink,
                                     void *context, bp_traffic_extent *ret_extent,
                                     bugpack_error *error);

/* Prints traffic-index.jsonl of the same channels: a line for each message of the pcap. A pass of
 * its own, because only one entry of a report can be open. */
bugpack_status bp_traffic_print_index(bp_temp_file *records, const bp_traffic_snapshot *channels,
                                      size_t channel_count, bp_sink *sink, void *context,
                                      bugpack_error *error);

/*
 * The records of a channel's rings. Recovery reads them too, also of a later version.
 */

/*
 * The tags. The payload of a message is a bp_traffic_header, the type's name and the bytes that
 * were kept. A pinned message begins with eight bytes more: its stamp in the other ring, by which
 * those are found that are in both.
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

#endif
