#include <string.h>

#include "base/status.h"
#include "session/session.h"

bugpack_status bugpack_redact_add(bugpack_session *session, const char *text,
                                  bugpack_error *error) {
    bp_call call;
    if (!bp_session_enter(&call, session, "add redaction rules", error)) {
        return bp_session_leave(&call);
    }
    if (text == NULL) {
        call.status = bp_fail(error, BUGPACK_ERR_INVALID, "text is NULL");
    } else if (session->config.without_redaction) {
        call.status = bp_fail(error, BUGPACK_ERR_INVALID,
                              "cannot add redaction rules: the session is without redaction");
    } else {
        call.status =
            bp_redaction_add(session->context.redaction, "rules", text, strlen(text), error);
    }
    return bp_session_leave(&call);
}
