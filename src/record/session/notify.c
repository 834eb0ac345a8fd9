#include <stdarg.h>

#include "recorder/recorder.h"
#include "session/session.h"

void bugpack_notify(bugpack_session *session, bugpack_level level, const char *source,
                    const char *format, ...) {
    if (bp_session_check(session) == BUGPACK_OK) {
        va_list arguments;
        va_start(arguments, format);
        bp_note_notifyv(session->context.recorder, level, source, format, arguments);
        va_end(arguments);
    }
}

void bugpack_notify_text(bugpack_session *session, bugpack_level level, const char *source,
                         const char *text) {
    bugpack_notify(session, level, source, "%s", text == NULL ? "" : text);
}

uint64_t bugpack_notify_retain(bugpack_session *session, bugpack_level level, const char *source,
                               const char *format, ...) {
    bp_call call;
    uint64_t number = 0;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        va_list arguments;
        va_start(arguments, format);
        bp_note_notifyv(session->context.recorder, level, source, format, arguments);
        va_end(arguments);
        number = bp_retained_add(bp_triggers_get(&session->triggers, &bp_trigger_retained));
    }
    (void)bp_session_leave(&call);
    return number;
}

uint64_t bugpack_notify_retain_text(bugpack_session *session, bugpack_level level,
                                    const char *source, const char *text) {
    return bugpack_notify_retain(session, level, source, "%s", text == NULL ? "" : text);
}
