#include "platform/crash_handler.h"
#include "recorder/recorder.h"
#include "session/session.h"

bugpack_status bugpack_crash_handler_install(bugpack_session *session, bugpack_error *error) {
    bp_call call;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    if (bp_session_enter(&call, session, "install the crash handler", error)) {
        call.status = bp_crash_trigger_install(session->triggers.crash, &detail);
        if (call.status != BUGPACK_OK) {
            bp_note_diagnose(session->context.recorder, BUGPACK_LEVEL_WARN,
                             "a crash will not be recorded: %s", detail.message);
            if (error != NULL) {
                *error = detail;
            }
        }
    }
    return bp_session_leave(&call);
}

void bugpack_crash_explain(bugpack_session *session, const char *type, const char *message) {
    bp_call call;
    if (bp_session_enter(&call, session, "explain a crash", NULL)) {
        bp_crash_trigger_explain(session->triggers.crash, type != NULL ? type : "",
                                 message != NULL ? message : "");
    }
    (void)bp_session_leave(&call);
}

bugpack_status bugpack_crash_thread_init(bugpack_error *error) {
    return bp_crash_thread_init(error);
}
