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

struct bugpack;

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
typedef size_t bugpack_traffic_filter(bugpack_direction direction, uint32_t type, void *bytes,
                                      size_t byte_count, void *context);

/* Flags of a channel. Since 0.1.0. */
/* Record no byte of any message: traffic.pcap and its index have times, directions, types and real
 * lengths. The filter is not called. bugpack_gap_unknown reports no byte of them either. */
#define BUGPACK_CHANNEL_WITHOUT_PAYLOAD UINT64_C(1)
/* Apply the redaction rules to the payload when a report is written. A secret is replaced by as
 * many bytes, so that the lengths in its protocol stay right. A message is searched as it was
 * recorded: nothing is found in what is compressed or encrypted, or divided between messages. */
#define BUGPACK_CHANNEL_REDACT_PAYLOAD UINT64_C(2)

/* How a channel is recorded. 0 is the default of every field (bugpack/common.h). Since 0.1.0. */
typedef struct bugpack_channel_options {
    size_t struct_size;
    /* Its share of traffic_budget_bytes, relative to the other channels; default 4. It is settled
     * when the channel is opened, so open important channels first. The first channels, whose
     * weights add up to BUGPACK_TRAFFIC_WEIGHT_TOTAL, share three quarters of the budget: each has
     * 3/4 * budget * weight / BUGPACK_TRAFFIC_WEIGHT_TOTAL bytes. Later ones share the last
     * quarter, each getting less than the one before: all channels with weights that add up to
     * `sum` have budget * (1 - BUGPACK_TRAFFIC_WEIGHT_TOTAL / (4 * sum)) together. A share is
     * rounded down to 4 KiB, but not to 0. */
    uint32_t weight;
    /* Addresses and ports of the frames in traffic.pcap. Wireshark chooses its dissector by the
     * server's port. A port of 0 is chosen by the library. */
    bool host_is_server;
    bool is_ipv6;
    uint16_t host_port, peer_port;
    /* How many bytes of the first messages, both directions together, are pinned: they are in every
     * pcap, even after the ring has wrapped. For handshakes. Default 4096, at most 1 MiB;
     * BUGPACK_OFF pins none. */
    uint32_t pin_bytes;
    /* Record at most this many bytes of each message; the pcap still gives its real length. Default
     * and BUGPACK_OFF: all of them. */
    uint32_t snap_bytes;
    bugpack_traffic_filter *filter; /* NULL: none */
    void *filter_context;
    uint64_t flags; /* BUGPACK_CHANNEL_…; INVALID for others */
} bugpack_channel_options;

#define BUGPACK_CHANNEL_OPTIONS_INIT BUGPACK_INIT(bugpack_channel_options)
BUGPACK_DEFINE_INIT(bugpack_channel_options)

#define BUGPACK_TRAFFIC_WEIGHT_TOTAL 50u

/* Channels per session, closed ones included. A message over 16 MiB, or over a quarter of the
 * channel's ring, is cut, and the manifest counts it. */
#define BUGPACK_CHANNEL_MAX 64

/*
 * Opens a channel under a name of 1 to BUGPACK_CHANNEL_MAX_BYTES bytes that no other channel has.
 * `options` NULL means the defaults.
 *
 * Errors: INVALID (name, options), LIMIT (the session records no traffic, less than 4 KiB of
 * the budget are left, or there are BUGPACK_CHANNEL_MAX channels), NO_MEMORY, IO, INERT, CLOSED.
 * Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_channel_open(
    struct bugpack *session, const char *name, const bugpack_channel_options *options,
    bugpack_channel **ret_channel, bugpack_error *error);

/*
 * Records a message. `type` is the protocol's number for it, `type_name` (optional, cut at 32
 * bytes) a word for people. Never fails or waits for a report, and allocates only for a filter. Any
 * thread. A NULL channel is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_traffic(bugpack_channel *channel, bugpack_direction direction,
                                 uint32_t type, const char *type_name, const void *bytes,
                                 size_t byte_count);

/*
 * Ends a channel whose connection is gone: further messages on it are ignored, and its filter is
 * not called any more when this returns, so that filter_context may be freed. Waits for a filter
 * that is running; not inside a filter. What was recorded stays in the reports of the session, and
 * so do the channel's name and its share of the memory. The handle stays valid until the session's
 * does not. Any thread. A NULL channel is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_channel_close(bugpack_channel *channel);

BUGPACK_END_DECLS

#endif
