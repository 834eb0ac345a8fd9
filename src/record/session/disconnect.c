#include <string.h>

#include "base/struct_size.h"
#include "session/session.h"

bugpack_status bugpack_disconnect_because(bugpack_session *session,
                                          const bugpack_disconnect_cause *cause) {
    bugpack_disconnect_cause known = BUGPACK_DISCONNECT_CAUSE_INIT;
    bp_call call;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bool is_good =
            bp_struct_read(&bp_of_bugpack_disconnect_cause, &known, cause, NULL) == BUGPACK_OK &&
            known.channel != NULL && known.channel[0] != '\0' &&
            strnlen(known.channel, BUGPACK_CHANNEL_MAX_BYTES + 1) <= BUGPACK_CHANNEL_MAX_BYTES;
        void *disconnects = bp_triggers_get(&session->triggers, &bp_trigger_disconnect);
        call.status = is_good ? bp_disconnect_see(disconnects, &known) : BUGPACK_ERR_INVALID;
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_disconnect(bugpack_session *session, const char *channel,
                                  const char *error_text) {
    bugpack_disconnect_cause cause = BUGPACK_DISCONNECT_CAUSE_INIT;
    cause.channel = channel;
    cause.error_text = error_text;
    return bugpack_disconnect_because(session, &cause);
}
