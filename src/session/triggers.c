/*
 * The public calls that trigger reports by what the host met: gaps, disconnects, notifications.
 */
#include <stdarg.h>
#include <string.h>

#include "base/struct_size.h"
#include "recorder/recorder.h"
#include "session/session.h"
#include "trigger/pedantic.h"
#include "trigger/retained.h"
#include "trigger/trigger.h"

static bp_pedantic *pedantic_of(const bugpack *session) {
    return bp_triggers_get(session->triggers, &bp_trigger_pedantic);
}

/* An occurrence that is only counted does not enter the session: the table outlives its close. */
static void see(bugpack *session, const bp_gap_key *key, const bp_occurrence *occurrence) {
    bp_pedantic *pedantic = pedantic_of(session);
    bp_gap *gap = NULL;
    bp_guard_entry entry;
    bp_gap_occurrence seen = bp_pedantic_see(pedantic, key, &gap);
    if (seen == BP_GAP_COUNTED) {
        return;
    }
    if (bp_session_enter(session, &entry) != BUGPACK_OK) {
        bp_pedantic_refuse(pedantic, seen, gap);
        return;
    }
    bp_pedantic_act(pedantic, seen, gap, occurrence);
    bp_session_leave(&entry);
}

void bugpack_gap(bugpack *session, const char *key) {
    bugpack_gap_with_state(session, key, NULL, NULL);
}

void bugpack_gap_with_state(bugpack *session, const char *key, bugpack_provider_callback *state,
                            void *context) {
    if (key != NULL && bp_session_check(session) == BUGPACK_OK) {
        bp_gap_key read;
        const bp_occurrence occurrence = {.state = state, .context = context};
        bp_pedantic_read_key(pedantic_of(session), &read, key);
        see(session, &read, &occurrence);
    }
}

void bugpack_gap_unknown(bugpack *session, const char *channel, uint64_t opcode, const void *bytes,
                         size_t byte_count) {
    if (channel != NULL && bp_session_check(session) == BUGPACK_OK) {
        bp_gap_key made;
        const bp_occurrence occurrence = {
            .bytes = bytes, .byte_count = byte_count, .channel = channel};
        bp_gap_key_make_unknown(&made, channel, opcode);
        see(session, &made, &occurrence);
    }
}

bool bugpack_pedantic_enable(bugpack *session, bool is_enabled) {
    return bp_session_check(session) == BUGPACK_OK &&
           bp_pedantic_enable(pedantic_of(session), is_enabled);
}

bugpack_status bugpack_pedantic_get(bugpack *session, bugpack_pedantic_state *ret_state) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    if (bp_struct_check(&bp_of_bugpack_pedantic_state, ret_state, NULL) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_pedantic_get(pedantic_of(session), &state);
    bp_session_leave(&entry);
    bp_struct_write(&bp_of_bugpack_pedantic_state, ret_state, &state);
    return BUGPACK_OK;
}

static bugpack_status read_cause(const bugpack_disconnect_cause *given,
                                 bugpack_disconnect_cause *cause) {
    *cause = (bugpack_disconnect_cause)BUGPACK_DISCONNECT_CAUSE_INIT;
    bool is_good =
        bp_struct_read(&bp_of_bugpack_disconnect_cause, cause, given, NULL) == BUGPACK_OK &&
        cause->channel != NULL && cause->channel[0] != '\0' &&
        strnlen(cause->channel, BUGPACK_CHANNEL_MAX_BYTES + 1) <= BUGPACK_CHANNEL_MAX_BYTES;
    return is_good ? BUGPACK_OK : BUGPACK_ERR_INVALID;
}

bugpack_status bugpack_disconnect_because(bugpack *session, const bugpack_disconnect_cause *cause) {
    bugpack_disconnect_cause known;
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = read_cause(cause, &known);
    if (status == BUGPACK_OK) {
        status =
            bp_disconnect_see(bp_triggers_get(session->triggers, &bp_trigger_disconnect), &known);
    }
    bp_session_leave(&entry);
    return status;
}

bugpack_status bugpack_disconnect(bugpack *session, const char *channel, const char *error_text) {
    bugpack_disconnect_cause cause = BUGPACK_DISCONNECT_CAUSE_INIT;
    cause.channel = channel;
    cause.error_text = error_text;
    return bugpack_disconnect_because(session, &cause);
}

uint64_t bugpack_notify_retain(bugpack *session, bugpack_level level, const char *source,
                               const char *format, ...) {
    bp_guard_entry entry;
    if (bp_session_enter(session, &entry) != BUGPACK_OK) {
        return 0;
    }
    va_list arguments;
    va_start(arguments, format);
    bp_note_notifyv(session->context.recorder, level, source, format, arguments);
    va_end(arguments);
    uint64_t number = bp_retained_add(bp_triggers_get(session->triggers, &bp_trigger_retained));
    bp_session_leave(&entry);
    return number;
}
