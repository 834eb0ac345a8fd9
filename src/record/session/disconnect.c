#include "base/status.h"
#include "base/struct_size.h"
#include "session/session.h"

bugpack_status bugpack_disconnect(bugpack_session *session, const char *channel,
                                  const char *error_text, const bugpack_disconnect_details *details,
                                  bugpack_error *error) {
    bugpack_disconnect_details known = BUGPACK_DISCONNECT_DETAILS_INIT;
    bp_call call;
    if (bp_session_enter(&call, session, "report a disconnect", error)) {
        call.status = bp_check_text("channel", channel, 1, BUGPACK_CHANNEL_MAX_BYTES, error);
        if (call.status == BUGPACK_OK && details != NULL) {
            call.status = bp_struct_read(&bp_of_bugpack_disconnect_details, &known, details, error);
        }
        if (call.status == BUGPACK_OK) {
            const bp_loss cause = {.channel = channel,
                                   .error_text = error_text,
                                   .error_kind = known.error_kind,
                                   .keepalive_fired = known.keepalive_fired};
            call.status = bp_disconnect_see(session->triggers.disconnect, &cause, error);
        }
    }
    return bp_session_leave(&call);
}
