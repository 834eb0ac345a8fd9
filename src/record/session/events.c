#include "base/struct_size.h"
#include "session/session.h"

int bugpack_events_fd(bugpack_session *session, bugpack_error *error) {
    bp_call call;
    bool is_inside = bp_session_enter(&call, session, "poll for events", error);
    int fd = is_inside ? bp_events_fd(session->context.events, error) : -1;
    (void)bp_session_leave(&call);
    return fd;
}

bool bugpack_next_event(bugpack_session *session, bugpack_event *ret_event) {
    bugpack_event event;
    bp_call call;
    if (bp_struct_check(&bp_of_bugpack_event, ret_event, NULL) != BUGPACK_OK) {
        return false;
    }
    bool is_taken = bp_session_enter(&call, session, NULL, NULL) &&
                    bp_events_take(session->context.events, &event);
    (void)bp_session_leave(&call);
    if (is_taken) {
        bp_struct_write(&bp_of_bugpack_event, ret_event, &event);
    }
    return is_taken;
}
