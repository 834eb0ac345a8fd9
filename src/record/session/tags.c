#include "session/session.h"

bugpack_status bugpack_set_tag(bugpack_session *session, const char *key, const char *value,
                               bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "set a tag", error)) {
        call.status = bp_tags_set(session->context.tags, key, value, error);
        if (call.status == BUGPACK_OK) {
            bp_crash_trigger_note_change(session->triggers.crash);
        }
    }
    return bp_session_leave(&call);
}
