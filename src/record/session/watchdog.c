#include "session/session.h"

bugpack_status bugpack_watchdog_open(bugpack_session *session, const char *name, uint64_t limit_ms,
                                     bugpack_watchdog **ret_watchdog, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "open a watchdog", error)) {
        call.status = bp_watchdog_open(session->triggers.watchdog, session, name, limit_ms,
                                       ret_watchdog, error);
    }
    return bp_session_leave(&call);
}

void bugpack_watchdog_close(bugpack_watchdog *watchdog) {
    bp_call call;
    bugpack_session *session = watchdog == NULL ? NULL : bp_watchdog_session(watchdog);
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bp_watchdog_close(session->triggers.watchdog, watchdog);
    }
    (void)bp_session_leave(&call);
}
