#include <stdarg.h>

#include <bugpack/bindings.h>

#include "recorder/recorder.h"
#include "session/session.h"

/* Returns the ticket. */
static uint64_t retain(bugpack_session *session) {
    bp_call call;
    uint64_t number = 0;
    if (bp_session_enter(&call, session, NULL, NULL)) {
        number = bp_retained_add(session->triggers.retained);
    }
    (void)bp_session_leave(&call);
    return number;
}

void bugpack_notify(bugpack_session *session, bugpack_level level, const char *source,
                    uint64_t *ret_retained, const char *format, ...) {
    bool is_open = bp_session_check(session) == BUGPACK_OK;
    if (is_open) {
        va_list arguments;
        va_start(arguments, format);
        bp_note_notifyv(session->context.recorder, level, source, format, arguments);
        va_end(arguments);
    }
    if (ret_retained != NULL) {
        *ret_retained = is_open ? retain(session) : 0;
    }
}

void bugpack_notify_text(bugpack_session *session, bugpack_level level, const char *source,
                         uint64_t *ret_retained, const char *text) {
    bugpack_notify(session, level, source, ret_retained, "%s", text == NULL ? "" : text);
}
