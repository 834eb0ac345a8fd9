#include <stdarg.h>

#include <bugpack/bindings.h>

#include "recorder/recorder.h"
#include "session/session.h"

void bugpack_notify(bugpack_session *session, bugpack_level level, const char *source,
                    uint64_t *ret_retained, const char *format, ...) {
    if (bp_session_check(session) == BUGPACK_OK) {
        va_list arguments;
        va_start(arguments, format);
        bp_note_notifyv(session->context.recorder, level, source, format, arguments);
        va_end(arguments);
    }
    if (ret_retained != NULL) {
        bp_call call;
        bool is_open = bp_session_enter(&call, session, NULL, NULL);
        *ret_retained = is_open ? bp_retained_add(session->triggers.retained) : 0;
        (void)bp_session_leave(&call);
    }
}

void bugpack_notify_text(bugpack_session *session, bugpack_level level, const char *source,
                         uint64_t *ret_retained, const char *text) {
    bugpack_notify(session, level, source, ret_retained, "%s", text == NULL ? "" : text);
}
