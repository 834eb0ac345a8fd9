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
#include "base/temp_file.h"
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

/* Lays a channel down as its options say, with ports chosen where they are 0. */
void bp_traffic_identity_init(bp_traffic_identity *identity, const char *name, uint32_t number,
                              const bugpack_channel_options *options);

/*
 * How large the ring of pins should be: it holds one message of `pin_bytes`, or 256 small ones with
 * what is recorded of each. In a smaller ring the opening ends sooner.
 */
size_t bp_traffic_pins_ring_bytes(uint32_t pin_bytes);

/*
 * A channel over two rings that it takes over: the messages, and the pinned opening messages (which
 * bp_traffic stops writing before anything would be evicted). `pins` may be NULL; it must be empty.
 * INVALID for pin_bytes over 1 MiB. On failure the rings stay the caller's.
 */
bugpack_status bp_traffic_new(const bp_traffic_identity *identity,
                              const bugpack_channel_options *options, bp_ring *ring, bp_ring *pins,
                              bp_traffic **ret_traffic, bugpack_error *error);
/* Frees the rings too. No other thread may be inside. NULL is fine. */
void bp_traffic_free(bp_traffic *traffic);

const bp_traffic_identity *bp_traffic_identity_of(const bp_traffic *traffic);

/* The rings that it took over, borrowed; there may be no pins. */
bp_ring *bp_traffic_ring(const bp_traffic *traffic);
bp_ring *bp_traffic_pins(const bp_traffic *traffic);

/*
 * Keeps one message, or of one over 16 MiB, or that would take more than a quarter of the ring, the
 * beginning. `bytes` NULL keeps none of them, and counts. Any thread.
 */
void bp_traffic_append(bp_traffic *traffic, bugpack_direction direction, uint32_t type,
                       const char *type_name, const void *bytes, size_t byte_count);

/* Refuses messages from now on. */
void bp_traffic_close(bp_traffic *traffic);

/*
 * The same, and gives all its memory back but about 1 KiB, which refuses messages until it is
 * freed. Others may be inside, or come later; a filter may still be called for messages that come
 * to nothing.
 */
void bp_traffic_retire(bp_traffic *traffic);

/* Bytes (as they were, before any cut) and messages per direction since the channel was opened. */
typedef struct bp_traffic_totals {
    uint64_t message_count[2], byte_count[2]; /* by bugpack_direction */
    uint64_t last_ns[2];                      /* monotonic, of the newest; 0: never */
    uint64_t cut_count;                       /* messages shortened by limit, snap or filter */
} bp_traffic_totals;
void bp_traffic_count(const bp_traffic *traffic, bp_traffic_totals *ret_totals);

/* A channel at an instant: its records in spools, from a living ring or a salvaged file. */
typedef struct bp_traffic_snapshot {
    bp_traffic_identity identity;
    bp_temp_file messages, pins; /* records as bp_ring_copy gives them; pins may be empty */
    bp_ring_view messages_view, pins_view;
    uint64_t wall_offset_ns; /* wall time = monotonic time + this */
} bp_traffic_snapshot;

/* Copies both rings up to `until_ns` into new spools in `dir_fd`, which keep `halt`. Any thread. */
bugpack_status bp_traffic_take_snapshot(bp_traffic *traffic, uint64_t until_ns,
                                        uint64_t wall_offset_ns, int dir_fd,
                                        const bp_cancel_token *token,
                                        bp_traffic_snapshot *ret_snapshot, bugpack_error *error);
void bp_traffic_snapshot_release(bp_traffic_snapshot *snapshot);

/* What can have shortened a message; more than one thing may have. */
typedef enum bp_traffic_cut {
    BP_TRAFFIC_CUT_SNAP,   /* the channel's snap length */
    BP_TRAFFIC_CUT_FILTER, /* its filter kept fewer bytes */
    BP_TRAFFIC_CUT_LIMIT,  /* 16 MiB, or a quarter of the ring */
    BP_TRAFFIC_CUT_ABSENT, /* the host gave no bytes */
    BP_TRAFFIC_CUT_PIN,    /* it is gone from the ring, and only its beginning was pinned */
    BP_TRAFFIC_CUT_COUNT
} bp_traffic_cut;

/* What the ledger says of a pcap. */
typedef struct bp_traffic_extent {
    uint64_t message_count; /* all that the pcap shows */
    uint64_t pinned_count;  /* of these, shown only by the pin: gone from the ring */
    uint64_t missing_count; /* older than the newest one shown, and gone from both */
    uint64_t cut_count;     /* of those shown, not whole: */
    uint64_t cut_counts[BP_TRAFFIC_CUT_COUNT]; /* why, by bp_traffic_cut */
    uint64_t from_wall_ns, to_wall_ns;         /* 0 when there is none */
} bp_traffic_extent;

/*
 * Writes traffic.pcap of these channels, merged by time, and flushes it; and traffic-index.jsonl
 * into `index` (NULL for none): a line for each message, which the caller flushes, because what
 * goes wrong with it does not harm the pcap. A message that stands in pins and ring appears once,
 * as the ring has it. Times never run backwards. Sequence numbers run per direction; where messages
 * are missing between the pinned ones and the rest, the numbers go on without a gap (so that a
 * dissector keeps its state) and the ledger tells. Memory: 16 KiB a channel, 64 KiB for each file,
 * and 16 bytes for each pinned message.
 */
bugpack_status bp_traffic_print_pcap(bp_traffic_snapshot *channels, size_t channel_count,
                                     bp_temp_file *out, bp_temp_file *index,
                                     bp_traffic_extent *ret_extent, bugpack_error *error);

#endif
