#include "base/status.h"
#include "base/struct_size.h"
#include "session/session.h"

static bugpack_status disconnect(bugpack_session *session, bp_loss *cause,
                                 const bugpack_disconnect_details *given, bugpack_error *error) {
    bugpack_disconnect_details details = BUGPACK_DISCONNECT_DETAILS_INIT;
    bugpack_status status =
        bp_check_text("channel", cause->channel, 1, BUGPACK_CHANNEL_MAX_BYTES, error);
    if (status == BUGPACK_OK && given != NULL) {
        status = bp_struct_read(&bp_of_bugpack_disconnect_details, &details, given, error);
    }
    if (status == BUGPACK_OK) {
        cause->error_kind = details.error_kind;
        cause->keepalive_fired = details.keepalive_fired;
        status = bp_disconnect_see(session->triggers.disconnect, cause, error);
    }
    return status;
}

bugpack_status bugpack_disconnect(bugpack_session *session, const char *channel,
                                  const char *error_text, const bugpack_disconnect_details *details,
                                  bugpack_error *error) {
    bp_loss cause = {.channel = channel, .error_text = error_text};
    bp_call call;
    if (bp_session_enter(&call, session, "report a disconnect", error)) {
        call.status = disconnect(session, &cause, details, error);
    }
    return bp_session_leave(&call);
}
