/*
 * Traffic: what went over each channel of the host's protocol, kept in rings, and written to a
 * report as traffic.pcap, which Wireshark opens without help.
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

/* A channel of a session. It is the session's; bugpack_close ends it, and the handle is good for as
 * long as the session's is. */
typedef struct bugpack_channel bugpack_channel;

typedef enum bugpack_direction {
    BUGPACK_SENT = 0,    /* from this host to its peer */
    BUGPACK_RECEIVED = 1 /* from the peer to this host */
} bugpack_direction;

/*
 * Takes out of a message what must not be kept, in a copy: `bytes` may be overwritten in place.
 * Returns how many of the bytes to keep (at most `byte_count`). It sees only what would be kept
 * without it, so snap_bytes bounds its work, and is not called when that is nothing. Runs on the
 * recording thread, on several at once when several record; messages over
 * BUGPACK_TRAFFIC_FILTER_ALONE_BYTES are filtered one after the other, each channel's by itself.
 * Must not call bugpack, and has to return: bugpack_close waits for it, and none is called when
 * that has returned.
 */
#define BUGPACK_TRAFFIC_FILTER_ALONE_BYTES 4096
typedef size_t bugpack_traffic_filter(bugpack_direction direction, uint32_t type, void *bytes,
                                      size_t byte_count, void *context);

/* How a channel is kept. Start from BUGPACK_CHANNEL_OPTIONS_INIT. Since 0.1.0. */
typedef struct bugpack_channel_options {
    size_t struct_size;
    /* Its share of the session's traffic_budget_bytes, out of BUGPACK_TRAFFIC_WEIGHT_TOTAL. */
    uint32_t weight;
    /* What the frames in traffic.pcap say: Wireshark chooses its dissector by the server's port. */
    bool host_is_server;
    bool is_ipv6;
    uint16_t host_port, peer_port; /* 0: bugpack chooses one */
    /* How many bytes of the channel's first messages, both directions together, are pinned: they
     * stand in every pcap, also after the ring has turned over. For handshakes. At most 1 MiB. */
    uint32_t pin_bytes;
    /* Keep only this many bytes of each message; 0 keeps all. The pcap says how long it really was.
     */
    uint32_t snap_bytes;
    bugpack_traffic_filter *filter;
    void *filter_context;
} bugpack_channel_options;

#define BUGPACK_TRAFFIC_WEIGHT_TOTAL 50u
#define BUGPACK_CHANNEL_OPTIONS_INIT                                                               \
    { sizeof(bugpack_channel_options), 4u, false, false, 0u, 0u, 4096u, 0u, NULL, NULL }

/*
 * At most this many channels a session. A message over 16 MiB, or over a quarter of the channel's
 * share of the budget, is cut, and the ledger counts it.
 */
#define BUGPACK_CHANNEL_MAX 64

/*
 * Opens a channel under a name of 1 to BUGPACK_CHANNEL_MAX_BYTES bytes that the session has not
 * seen. The channel is the session's. `options` NULL means the defaults. Errors: INVALID, NO_MEMORY
 * (also when the session's weights are used up), INERT, CLOSED. Any thread. Since 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_channel_open(
    struct bugpack *session, const char *name, const bugpack_channel_options *options,
    bugpack_channel **ret_channel, bugpack_error *error);

/*
 * Keeps one message. `type` is the protocol's own number for it, `type_name` (optional, at most 32
 * bytes are kept) a word for people. Never fails, never allocates, never waits for a report.
 * Any thread; not a signal handler. A NULL channel is ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_traffic(bugpack_channel *channel, bugpack_direction direction,
                                 uint32_t type, const char *type_name, const void *bytes,
                                 size_t byte_count);

BUGPACK_END_DECLS

#endif
