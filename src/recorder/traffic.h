/*
 * One traffic channel: messages into its ring on the host's threads, pcap frames out of it on ours.
 */
#ifndef BP_RECORDER_TRAFFIC_H
#define BP_RECORDER_TRAFFIC_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/sink.h"
#include "base/spool.h"
#include "recorder/pcap.h"
#include "ring/ring.h"

typedef struct bp_traffic bp_traffic;

/* How a channel is laid down beside its ring, so that a recoverer needs nothing else: fixed size.
 */
typedef struct bp_traffic_identity {
    char name[64 + 8]; /* NUL-terminated, any bytes */
    uint8_t is_ipv6, host_is_server;
    uint16_t host_port, peer_port; /* never 0 here */
    uint32_t snap_bytes;
    uint32_t number; /* of the channel in its session, from 0: tells its addresses from others' */
} bp_traffic_identity;

/*
 * A channel over two rings that it takes over: the messages, and the pinned opening messages (which
 * bp_traffic stops writing before anything would be evicted). `pins` may be NULL.
 */
bugpack_status bp_traffic_new(const bp_traffic_identity *identity,
                              const bugpack_channel_options *options, bp_ring *ring, bp_ring *pins,
                              bp_traffic **ret_traffic, bugpack_error *error);
void bp_traffic_free(bp_traffic *traffic);

const bp_traffic_identity *bp_traffic_identity_of(const bp_traffic *traffic);

/* Keeps one message. Any thread. */
void bp_traffic_append(bp_traffic *traffic, bugpack_direction direction, uint32_t type,
                       const char *type_name, const void *bytes, size_t byte_count);

/* Refuses messages from now on. */
void bp_traffic_close(bp_traffic *traffic);

/* Bytes and messages per direction since the channel was opened, and the last activity. */
typedef struct bp_traffic_totals {
    uint64_t message_count[2], byte_count[2]; /* by bugpack_direction */
    uint64_t last_ns[2];                      /* monotonic; 0: never */
    uint64_t cut_count;                       /* messages shortened by limit, snap or filter */
} bp_traffic_totals;
void bp_traffic_count(const bp_traffic *traffic, bp_traffic_totals *ret_totals);

/* A channel at an instant: its records in spools, from a living ring or a salvaged file. */
typedef struct bp_traffic_frozen {
    bp_traffic_identity identity;
    bp_spool messages, pins; /* records as bp_ring_copy gives them; pins may be empty */
    bp_ring_view messages_view, pins_view;
    uint64_t wall_offset_ns; /* wall time = monotonic time + this */
} bp_traffic_frozen;

/* Copies both rings up to `until_ns` into new spools in `dir_fd`. */
bugpack_status bp_traffic_freeze(bp_traffic *traffic, uint64_t until_ns, uint64_t wall_offset_ns,
                                 int dir_fd, bp_traffic_frozen *ret_frozen, bugpack_error *error);
void bp_traffic_frozen_release(bp_traffic_frozen *frozen);

/* What the ledger says of a pcap. */
typedef struct bp_traffic_extent {
    uint64_t message_count, pinned_count; /* pinned: only by the pin, gone from the ring */
    uint64_t missing_count; /* between the pinned messages and the oldest in the ring */
    uint64_t cut_count;
    uint64_t from_wall_ns, to_wall_ns;
} bp_traffic_extent;

/*
 * Writes traffic.pcap of these channels, merged by time. A message that stands in pins and ring
 * appears once. Sequence numbers run per direction; where messages are missing between the pinned
 * ones and the rest, the numbers go on without a gap (so that a dissector keeps its state) and the
 * ledger tells.
 */
bugpack_status bp_traffic_print_pcap(bp_traffic_frozen *channels, size_t channel_count,
                                     bp_spool *out, bp_traffic_extent *ret_extent,
                                     bugpack_error *error);

#endif
