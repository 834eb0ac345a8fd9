#include <string.h>

#include "base/struct_size.h"
#include "session/session.h"

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
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        call.status = read_cause(cause, &known);
        if (call.status == BUGPACK_OK) {
            call.status = bp_disconnect_see(
                bp_triggers_get(session->triggers, &bp_trigger_disconnect), &known);
        }
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_disconnect(bugpack *session, const char *channel, const char *error_text) {
    bugpack_disconnect_cause cause = BUGPACK_DISCONNECT_CAUSE_INIT;
    cause.channel = channel;
    cause.error_text = error_text;
    return bugpack_disconnect_because(session, &cause);
}
