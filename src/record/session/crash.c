#include "platform/crash_handler.h"
#include "recorder/recorder.h"
#include "session/session.h"

bugpack_status bugpack_crash_handler_install(bugpack_session *session) {
    bp_call call;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        call.status = bp_crash_trigger_install(
            bp_triggers_get(&session->triggers, &bp_trigger_crash), &error);
        if (call.status != BUGPACK_OK) {
            bp_note_diagnose(session->context.recorder, BUGPACK_LEVEL_WARN,
                             "a crash will not be recorded: %s", error.message);
        }
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_crash_thread_init(void) {
    return bp_crash_thread_init(NULL);
}
