#include "recorder/recorder.h"
#include "session/session.h"

bool bugpack_log_wants(const bugpack_session *session, bugpack_level level) {
    if (bp_session_check(session) != BUGPACK_OK) {
        return false;
    }
    const bp_log_recorder *log = session->context.recorder->log;
    return log != NULL && bp_log_recorder_wants(log, level);
}

void bugpack_log_set_level(bugpack_session *session, bugpack_level level) {
    if (level == BUGPACK_LEVEL_DEFAULT) {
        level = BUGPACK_LEVEL_DEBUG;
    }
    if ((unsigned)level <= BUGPACK_LEVEL_OFF && bp_session_check(session) == BUGPACK_OK &&
        session->context.recorder->log != NULL) {
        bp_log_recorder_set_level(session->context.recorder->log, level);
    }
}

void bugpack_logv(bugpack_session *session, bugpack_level level, const char *channel,
                  const char *format, va_list arguments) {
    if (bp_session_check(session) == BUGPACK_OK) {
        bp_note_logv(session->context.recorder, level, channel, format, arguments);
    }
}

void bugpack_log(bugpack_session *session, bugpack_level level, const char *channel,
                 const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bugpack_logv(session, level, channel, format, arguments);
    va_end(arguments);
}

void bugpack_log_part(bugpack_session *session, bugpack_level level, const char *channel,
                      const void *message, size_t message_bytes, unsigned part) {
    if (bp_session_check(session) == BUGPACK_OK) {
        bp_note_log_part(session->context.recorder, level, channel, message,
                         message != NULL ? message_bytes : 0,
                         part & (BUGPACK_PART_CONTINUES | BUGPACK_PART_UNFINISHED));
    }
}

void bugpack_log_bytes(bugpack_session *session, bugpack_level level, const char *channel,
                       const void *message, size_t message_bytes) {
    bugpack_log_part(session, level, channel, message, message_bytes, 0);
}
