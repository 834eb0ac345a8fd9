/*
 * The public calls of the crash handler.
 */
#include "trigger/crash.h"
#include "base/status.h"
#include "platform/crash_handler.h"
#include "recorder/note.h"
#include "session/session.h"

bugpack_status bugpack_crash_handler_install(bugpack *session) {
    bp_guard_entry entry;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return status;
    }
    status =
        bp_crash_trigger_install(bp_triggers_get(session->triggers, &bp_trigger_crash), &error);
    if (status != BUGPACK_OK) {
        bp_note_diagnose(session->context.recorder, BUGPACK_LEVEL_WARN,
                         "a crash will not be recorded: %s", error.message);
    }
    bp_session_leave(&entry);
    return status;
}

bugpack_status bugpack_crash_thread_init(void) {
    return bp_crash_thread_init(NULL);
}
