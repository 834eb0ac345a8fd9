#include "base/struct_size.h"
#include "session/session.h"

static bp_pedantic *pedantic_of(const bugpack_session *session) {
    return session->triggers.pedantic;
}

/* An occurrence that is only counted does not enter the session: the table outlives its close. */
static void see(bugpack_session *session, const bp_gap_key *key, const bp_occurrence *occurrence) {
    bp_pedantic *pedantic = pedantic_of(session);
    bp_gap *gap = NULL;
    bp_gap_occurrence seen = bp_pedantic_see(pedantic, key, &gap);
    if (seen == BP_GAP_COUNTED) {
        return;
    }
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bp_pedantic_act(pedantic, seen, gap, occurrence);
    } else if (seen == BP_GAP_REPORT) {
        bp_gaps_settle(pedantic->gaps, gap, false);
    }
    (void)bp_session_leave(&call);
}

void bugpack_gap(bugpack_session *session, const char *key) {
    bugpack_gap_with_state(session, key, NULL, NULL);
}

void bugpack_gap_with_state(bugpack_session *session, const char *key,
                            bugpack_provider_callback *state, void *context) {
    if (key != NULL && bp_session_check(session) == BUGPACK_OK) {
        bp_gap_key read;
        const bp_occurrence occurrence = {.state = state, .context = context};
        bp_gaps_read_key(pedantic_of(session)->gaps, &read, key);
        see(session, &read, &occurrence);
    }
}

void bugpack_gap_unknown(bugpack_session *session, const char *channel, uint64_t opcode,
                         const void *bytes, size_t byte_count) {
    if (channel != NULL && bp_session_check(session) == BUGPACK_OK) {
        bp_gap_key made;
        const bp_occurrence occurrence = {
            .bytes = bytes, .byte_count = byte_count, .channel = channel};
        bp_gap_key_make_unknown(&made, channel, opcode);
        see(session, &made, &occurrence);
    }
}

bool bugpack_pedantic_enable(bugpack_session *session, bool is_enabled) {
    return bp_session_check(session) == BUGPACK_OK &&
           atomic_exchange(&pedantic_of(session)->is_enabled, is_enabled);
}

bugpack_status bugpack_pedantic_get(bugpack_session *session, bugpack_pedantic_state *ret_state,
                                    bugpack_error *error) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    if (bp_struct_check(&bp_of_bugpack_pedantic_state, ret_state, error) != BUGPACK_OK) {
        return BUGPACK_ERR_INVALID;
    }
    bp_call call;
    if (bp_session_enter(&call, session, "read the state of pedantic mode", error)) {
        bp_pedantic_get(pedantic_of(session), &state);
        bp_struct_write(&bp_of_bugpack_pedantic_state, ret_state, &state);
    }
    return bp_session_leave(&call);
}
