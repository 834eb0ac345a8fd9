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
 * Removes from a message what must not be recorded. `bytes` is a copy that may be overwritten in
 * place; the return value says how many of its bytes to keep (at most `byte_count`). The filter
 * gets only what would be recorded without it, so snap_bytes bounds its work, and it is not called
 * when that is nothing.
 *
 * Runs on the recording thread, on several at once when several record, and under no lock of
 * bugpack. The copy is on the stack up to BUGPACK_TRAFFIC_FILTER_STACK_BYTES, else in a buffer that
 * the channel has for one thread; further threads allocate theirs, and record the message without
 * its bytes when that fails. Must not call bugpack, and has to return: bugpack_close waits for it
 * and calls no filter once it has returned.
 */
#define BUGPACK_TRAFFIC_FILTER_STACK_BYTES 4096
typedef size_t bugpack_traffic_filter(bugpack_direction direction, uint32_t type, void *bytes,
                                      size_t byte_count, void *context);

/* How a channel is kept. Start from BUGPACK_CHANNEL_OPTIONS_INIT. Since 0.1.0. */
typedef struct bugpack_channel_options {
    size_t struct_size;
    /* Its share of the session's traffic_budget_bytes, relative to the other channels. Not 0.
     * Channels whose weights add up to BUGPACK_TRAFFIC_WEIGHT_TOTAL share three quarters of the
     * budget in proportion: each has 3/4 * budget * weight / BUGPACK_TRAFFIC_WEIGHT_TOTAL bytes.
     * Channels opened after that share the last quarter, each getting less than the one before:
     * with weights that add up to `sum`, all channels together have
     * budget * (1 - BUGPACK_TRAFFIC_WEIGHT_TOTAL / (4 * sum)). A share is rounded down to 4 KiB
     * (but not to 0), settled when the channel is opened, and never changed; so open important
     * channels first. */
    uint32_t weight;
    /* For the frames in traffic.pcap: Wireshark chooses its dissector by the server's port. */
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
 * share of the budget, is cut, and the manifest counts it.
 */
#define BUGPACK_CHANNEL_MAX 64

/*
 * Opens a channel under a name of 1 to BUGPACK_CHANNEL_MAX_BYTES bytes that the session has not
 * seen. The channel is the session's. `options` NULL means the defaults. Errors: INVALID, NO_MEMORY
 * (also when less than 4 KiB of the budget are left), INERT, CLOSED. Any thread. Since
 * 0.1.0.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_channel_open(
    struct bugpack *session, const char *name, const bugpack_channel_options *options,
    bugpack_channel **ret_channel, bugpack_error *error);

/*
 * Keeps one message. `type` is the protocol's own number for it, `type_name` (optional, at most 32
 * bytes are kept) a word for people. Never fails, never waits for a report, and allocates
 * only for a filter (see there). Any thread; not a signal handler. A NULL channel is ignored. Since
 * 0.1.0.
 */
BUGPACK_API void bugpack_traffic(bugpack_channel *channel, bugpack_direction direction,
                                 uint32_t type, const char *type_name, const void *bytes,
                                 size_t byte_count);

BUGPACK_END_DECLS

#endif
