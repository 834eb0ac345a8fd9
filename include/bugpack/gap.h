/*
 * Pedantic mode: the first time that a host meets something in a protocol that it does not handle,
 * a report of the kind `pedantic` is taken automatically.
 *
 * A gap has a key, `<channel>:<kind>:<detail>`, such as "display:unimpl:draw_rop3". Each distinct
 * key gives one report, with the traffic of the key's channel and the rings as of the gap. Further
 * occurrences are only counted. A session takes at most pedantic.cap such reports;
 * pedantic.channel_cap limits those of one channel, and limits.per_signature those of one key on a
 * day (bugpack/session.h has all three). What is suppressed is counted in the manifest of every
 * later report and in "<app>-pedantic-summary-<time>.json", written beside the reports when the
 * session is closed. If a report cannot be written, the next occurrence of its key tries again, at
 * most BUGPACK_GAP_TRIES times.
 *
 * When gaps come faster than reports can be written they wait in their own queue, which loses none.
 * They take no place of the BUGPACK_REPORT_QUEUE_MAX reports that may wait, and those come first.
 * The first ones are snapshotted at once, until their copies take 256 MiB of disk or 64
 * descriptors. The others contain nothing recorded after their gap, but the rings may have wrapped
 * before they are copied.
 *
 * The channel of a key is the part before its first ':', or the whole key. If no traffic channel
 * has that name, the report has the traffic of all channels, and its manifest says so.
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

#define BUGPACK_GAP_KEY_MAX_BYTES 120      /* a longer key ends in a hash keyed per session */
#define BUGPACK_GAP_KEYS_MAX 4096          /* per session; the last is "overflow", for all later */
#define BUGPACK_GAP_CHANNEL_KEYS_MAX 256   /* per channel; then "<channel>:overflow" */
#define BUGPACK_GAP_UNKNOWN_OPCODES_MAX 64 /* per channel; then "<channel>:unknown:overflow" */
#define BUGPACK_GAP_DUMP_MAX_BYTES 64      /* bytes of a message that bugpack_gap_unknown reports */
#define BUGPACK_GAP_TRIES 3

/*
 * Counts an occurrence of a gap, and takes a report at the first one. Call it from protocol
 * handlers as often as the gap occurs: a known key costs a look-up and a count. Counts even while
 * the mode is off. Never fails and never waits for a report. The key may hold any bytes; file names
 * are sanitised. An empty key counts as "unnamed". Any thread. A NULL session or key is ignored.
 */
BUGPACK_API void bugpack_gap(bugpack_session *session, const char *key);

/*
 * bugpack_gap with the state of the channel at this very gap. If the gap leads to a report, `state`
 * is called on the calling thread before the call returns, and fills channel-state.json (one JSON
 * document) in place of a registered provider of that name. It may call bugpack only to write, and
 * has no time limit. Any thread.
 */
BUGPACK_API void bugpack_gap_with_state(bugpack_session *session, const char *key,
                                        bugpack_provider_callback *state, void *context);

/*
 * The gap of a message without a handler. The key is "<channel>:unknown:<opcode>", with the opcode
 * in decimal, and the report's description has the length of the message and its first
 * BUGPACK_GAP_DUMP_MAX_BYTES in hexadecimal. A channel over 91 bytes is cut in the key. With NULL
 * `bytes` the report has no description. Any thread. A NULL session or channel is ignored.
 *
 * The description has no byte that traffic.pcap would not have: at most snap_bytes of them where a
 * traffic channel of this very name has that, and none if the channel has a filter or
 * BUGPACK_PAYLOAD_NONE, if the session records no traffic, or if without_entries names
 * traffic.pcap. That holds after bugpack_channel_close too. If no traffic channel has the name, the
 * bytes are reported. Secrets in them are overwritten, unless the channel has
 * BUGPACK_PAYLOAD_EXACT.
 */
BUGPACK_API void bugpack_gap_unknown(bugpack_session *session, const char *channel, uint64_t opcode,
                                     const void *bytes, size_t byte_count);

/*
 * Turns pedantic mode on or off; it starts as the option pedantic.is_enabled says. Gaps counted
 * while it was off lead to their report at their next occurrence. Reports under way are not
 * affected. Returns the previous state; false without a session. Any thread.
 */
BUGPACK_API bool bugpack_pedantic_enable(bugpack_session *session, bool is_enabled);

/* The state of pedantic mode, for a host's user interface. */
typedef struct bugpack_pedantic_state {
    size_t struct_size;
    bool is_enabled;
    uint64_t cap;              /* as in bugpack_options; BUGPACK_OFF: none */
    uint32_t written_count;    /* reports on disk */
    uint32_t pending_count;    /* reports accepted and not yet written */
    uint32_t distinct_count;   /* keys, including overflow keys */
    uint64_t occurrence_count; /* of all keys together */
} bugpack_pedantic_state;

#define BUGPACK_PEDANTIC_STATE_INIT BUGPACK_INIT(bugpack_pedantic_state)

/* Fills `*ret_state`, as far as its struct_size reaches. Errors: INVALID (struct_size), INERT,
 * CLOSED. Any thread. */
BUGPACK_API bugpack_status bugpack_pedantic_get(bugpack_session *session,
                                                bugpack_pedantic_state *ret_state,
                                                bugpack_error *error);

BUGPACK_END_DECLS

#endif
