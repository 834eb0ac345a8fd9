/*
 * Pedantic mode: the first time that a host meets something in a protocol that it does not handle,
 * a report of the kind `pedantic` is taken by itself.
 *
 * A gap is named by its key, `<channel>:<kind>:<detail>`, such as "display:unimpl:draw_rop3". Each
 * distinct key gives one report: with the traffic of the channel that the key names, and frozen at
 * the gap. Further sights only count. A session takes at most pedantic_cap such reports, one
 * channel at most pedantic_channel_cap of them; what is suppressed by that stands with its count in
 * the ledger of every later report and in a summary that is written beside the reports when the
 * session is closed, "<app>-pedantic-summary-<time>.json".
 *
 * A report that could not be written gives its place back, and the next sight of the key tries
 * again, at most BUGPACK_GAP_TRIES times.
 *
 * Gaps that come faster than reports are written wait in a line of their own, in which none is
 * lost; at most half of the places in the queue of reports are theirs, so that a person's trigger
 * finds room. The first of the line are frozen at once as well, until their copies of the rings
 * take 256 MiB of the disk (and as much is free twice over) or 64 descriptors. The others still
 * hold nothing that was recorded after their gap, but a ring may have turned over before others
 * make room for them.
 *
 * The channel of a key is what stands before its first ':', or all of it. Where no traffic channel
 * has that name, the report holds the traffic of all of them, and its ledger says so.
 */
#ifndef BUGPACK_GAP_H
#define BUGPACK_GAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>
#include <bugpack/provide.h>

BUGPACK_BEGIN_DECLS

struct bugpack;

#define BUGPACK_GAP_KEY_MAX_BYTES 120      /* a longer key is cut, and ends in a hash of itself */
#define BUGPACK_GAP_KEYS_MAX 4096          /* of a session; the last is "overflow", for all later */
#define BUGPACK_GAP_CHANNEL_KEYS_MAX 256   /* of one channel; then "<channel>:overflow" */
#define BUGPACK_GAP_UNKNOWN_OPCODES_MAX 64 /* of one channel; then "<channel>:unknown:overflow" */
#define BUGPACK_GAP_DUMP_MAX_BYTES 64      /* what bugpack_gap_unknown keeps of a message */
#define BUGPACK_GAP_TRIES 3

/*
 * Says that a gap was met. To be called from protocol handlers as often as the protocol likes: a
 * key that was seen before costs a look-up and a count. Also counts while the mode is off. Never
 * fails, and never waits for a report. Bytes of the key may be anything; the report's name has them
 * made harmless. An empty key counts as "unnamed". Any thread; not a signal handler. NULL is
 * ignored. Since 0.1.0.
 */
BUGPACK_API void bugpack_gap(struct bugpack *session, const char *key);

/*
 * The same, with the state of the key's channel as it is at this very gap: `state` is called on the
 * calling thread before the call returns, and only when the gap leads to a report, whose
 * channel-state.json it fills (one JSON document), in place of a registered provider of that name.
 * It must not call bugpack but to write. It has no time limit: it is the host's own thread. Any
 * thread; not a signal handler. Since 0.1.0.
 */
BUGPACK_API void bugpack_gap_with_state(struct bugpack *session, const char *key,
                                        bugpack_provider *state, void *context);

/*
 * The gap of a message that the host has no handler for: the key is
 * "<channel>:unknown:<opcode>", decimal, and the report's description holds the first
 * BUGPACK_GAP_DUMP_MAX_BYTES of the message in hexadecimal. A channel over 91 bytes is cut. NULL
 * for `bytes` keeps none of them; for `channel` it is ignored. Any thread; not a signal handler.
 * Since 0.1.0.
 */
BUGPACK_API void bugpack_gap_unknown(struct bugpack *session, const char *channel, uint64_t opcode,
                                     const void *bytes, size_t byte_count);

/*
 * Turns pedantic mode on or off while the session runs; it starts as the option `pedantic` says.
 * Gaps that were counted while it was off lead to their report at their next sight. Returns how it
 * was; false without a session. Reports that are under way are not affected. Any thread. Since
 * 0.1.0.
 */
BUGPACK_API bool bugpack_pedantic_enable(struct bugpack *session, bool is_enabled);

/* Where pedantic mode stands, for a host's user interface. Start from BUGPACK_PEDANTIC_STATE_INIT.
 * Since 0.1.0. */
typedef struct bugpack_pedantic_state {
    size_t struct_size;
    bool is_enabled;
    uint32_t cap;
    uint32_t written_count;    /* reports on disk */
    uint32_t pending_count;    /* accepted and not yet written */
    uint32_t distinct_count;   /* keys seen, overflow keys included */
    uint64_t occurrence_count; /* of all keys together */
} bugpack_pedantic_state;

#define BUGPACK_PEDANTIC_STATE_INIT                                                                \
    { sizeof(bugpack_pedantic_state), false, 0u, 0u, 0u, 0u, 0u }

/* Errors: INVALID (struct_size), INERT, CLOSED. Any thread. Since 0.1.0. */
BUGPACK_API bugpack_status bugpack_pedantic_get(struct bugpack *session,
                                                bugpack_pedantic_state *ret_state);

BUGPACK_END_DECLS

#endif
