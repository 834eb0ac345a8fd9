/*
 * Traffic: the messages on each channel of the host's protocol, recorded in rings and written to
 * traffic.pcap of a report, which Wireshark opens.
 */
#ifndef BUGPACK_TRAFFIC_H
#define BUGPACK_TRAFFIC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* A channel of a session. The session owns it; see bugpack_channel_close. */
typedef struct bugpack_channel bugpack_channel;

typedef enum bugpack_direction {
    BUGPACK_SENT = 0,    /* from this host to its peer */
    BUGPACK_RECEIVED = 1 /* from the peer to this host */
} bugpack_direction;

/*
 * Removes secrets from a message. `bytes` is a copy and may be overwritten in place. Returns how
 * many bytes to record, at most `byte_count`. The filter sees only bytes that would be recorded
 * without it, so snap_bytes bounds its work; it is not called for 0 bytes.
 *
 * Runs on the recording thread, on several threads at once, and under no lock. The copy is on the
 * stack up to BUGPACK_TRAFFIC_FILTER_STACK_BYTES. A larger one is in a buffer that the channel has
 * for one thread; further threads allocate theirs, and record the message without its bytes if that
 * fails. A filter must not call bugpack and must return: closing waits for it. It is not called
 * after bugpack_channel_close or bugpack_close has returned.
 */
#define BUGPACK_TRAFFIC_FILTER_STACK_BYTES 4096
typedef size_t bugpack_filter_callback(bugpack_direction direction, uint32_t type, void *bytes,
                                       size_t byte_count, void *context);

/* The part of a channel's messages that is recorded and reported. */
typedef enum bugpack_payload {
    /* The redaction rules are applied when a report is written: a secret is overwritten by as many
     * bytes, so that the lengths in its protocol stay right (docs/REDACTION.md, Traffic). */
    BUGPACK_PAYLOAD_REDACTED = 0,
    /* No byte of any message: traffic.pcap and its index have times, directions, types and real
     * lengths. The filter is not called. bugpack_gap_unknown reports no byte of them either. */
    BUGPACK_PAYLOAD_NONE = 1,
    /* As it was recorded, byte for byte. The manifest names these channels. */
    BUGPACK_PAYLOAD_EXACT = 2
} bugpack_payload;

/* How a channel is recorded. 0 is the default of every field (bugpack/common.h). */
typedef struct bugpack_channel_options {
    size_t struct_size;
    /* Its share of recorder.traffic_budget_bytes, relative to the other channels; default 4. It is
     * settled when the channel is opened, so open important channels first. The first channels,
     * whose weights add up to BUGPACK_TRAFFIC_WEIGHT_TOTAL, share three quarters of the budget:
     * each has 3/4 * budget * weight / BUGPACK_TRAFFIC_WEIGHT_TOTAL bytes. Later ones share the
     * last quarter, each getting less than the one before: all open channels with weights that add
     * up to `sum` have budget * (1 - BUGPACK_TRAFFIC_WEIGHT_TOTAL / (4 * sum)) together. But no
     * share is less than a 64th of what a first channel of its weight has, nor than 16 KiB, if that
     * one has more: of hundreds of channels the last have that, in addition to the budget. */
    uint64_t weight;
    /* Addresses and ports of the frames in traffic.pcap. Wireshark chooses its dissector by the
     * server's port. A port of 0 is chosen by the library. */
    bool host_is_server;
    uint16_t host_port, peer_port;
    bugpack_payload payload; /* INVALID for values that are none */
    /* How many bytes of the first messages, both directions together, are pinned: they are in every
     * pcap, even after the ring has wrapped. For handshakes. Default 4096, at most 1 MiB;
     * BUGPACK_OFF pins none. */
    uint64_t pin_bytes;
    /* Record at most this many bytes of each message; the pcap still gives its real length. Default
     * and BUGPACK_OFF: all of them. */
    uint64_t snap_bytes;
    bugpack_filter_callback *filter; /* NULL: none */
    void *filter_context;
} bugpack_channel_options;

#define BUGPACK_CHANNEL_OPTIONS_INIT BUGPACK_INIT(bugpack_channel_options)

#define BUGPACK_TRAFFIC_WEIGHT_TOTAL 50u

/* A message over 16 MiB, or over a quarter of the channel's ring, is cut, and the manifest counts
 * it. */

/*
 * Opens a channel under a name of 1 to BUGPACK_CHANNEL_MAX_BYTES bytes that no open channel has.
 * `options` NULL means the defaults. Memory alone limits how many are open.
 *
 * Errors: INVALID (name, options), LIMIT (the session records no traffic), NO_MEMORY, IO, INERT,
 * CLOSED. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_channel_open(
    bugpack_session *session, const char *name, const bugpack_channel_options *options,
    bugpack_channel **ret_channel, bugpack_error *error);

/*
 * Records a message. `type` is the protocol's number for it, `type_name` (optional, cut at 32
 * bytes) a word for people. Never fails or waits for a report, and allocates only for a filter. Any
 * thread. A NULL channel is ignored.
 */
BUGPACK_API void bugpack_traffic(bugpack_channel *channel, bugpack_direction direction,
                                 uint32_t type, const char *type_name, const void *bytes,
                                 size_t byte_count);

/*
 * Ends a channel whose connection is gone: further messages on it are ignored, and its filter is
 * not called any more when this returns, so that filter_context may be freed. Waits for a filter
 * that is running; not inside a filter. The name is free again.
 *
 * Its records stay in the reports of the session until newer channels need the memory: the
 * channels that were closed first go first. All closed ones together have what the open ones leave
 * of recorder.traffic_budget_bytes, and at least an eighth of it; there are at most 512 of them.
 *
 * The handle must not be used any more. Calls that come at the same time, or late, are ignored
 * until BUGPACK_CHANNEL_LATE_CALLS further channels have been closed; then it may be another
 * channel's. Any thread. A NULL channel is ignored.
 */
#define BUGPACK_CHANNEL_LATE_CALLS 1024
BUGPACK_API void bugpack_channel_close(bugpack_channel *channel);

BUGPACK_END_DECLS

#endif
