#include "session/session.h"

bugpack_status bp_session_check(const bugpack *session) {
    if (session == NULL) {
        return BUGPACK_ERR_INVALID;
    }
    return bp_fork_guard_is_owner(session->fork_guard) ? BUGPACK_OK : BUGPACK_ERR_INERT;
}

bugpack_status bp_session_enter(bugpack *session, bp_guard_entry *ret_entry) {
    bugpack_status status = bp_session_check(session);
    if (status == BUGPACK_OK && !bp_entry_guard_enter(&session->guard, ret_entry)) {
        status = BUGPACK_ERR_CLOSED;
    }
    return status;
}

void bp_session_leave(bp_guard_entry *entry) {
    bp_entry_guard_leave(entry);
}
