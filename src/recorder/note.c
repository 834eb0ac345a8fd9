#include "recorder/note.h"

#include <stdbool.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"

static const char own_name[] = "bugpack";

void bp_note_logv(bp_recorder *recorder, bugpack_level level, const char *channel,
                  const char *format, va_list arguments) {
    bp_log_recorder *log = recorder->log;
    if (log == NULL || !bp_log_recorder_wants(log, level)) {
        return;
    }
    /* One character more than is recorded, so that the cut sees whether it would split one. */
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES + 4 + 1];
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length < 0) {
        return;
    }
    bool was_cut = (size_t)length >= sizeof message;
    size_t message_bytes = was_cut ? sizeof message - 1 : (size_t)length;
    bp_log_recorder_append(log, level, channel, message, message_bytes,
                           was_cut ? BP_PART_WAS_CUT : 0);
}

void bp_note_notifyv(bp_recorder *recorder, bugpack_level level, const char *source,
                     const char *format, va_list arguments) {
    bp_notifications *notifications = recorder->notifications;
    if (notifications == NULL) {
        return;
    }
    char text[BUGPACK_NOTIFICATION_MAX_BYTES + 2]; /* one more, so that a cut is seen */
    int length = vsnprintf(text, sizeof text, format, arguments);
    if (length >= 0) {
        size_t text_bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
        bp_notifications_add(notifications, bp_clock_monotonic_ns(), level, source, text,
                             text_bytes);
    }
}

static void diagnosev(bp_recorder *recorder, bugpack_level level, const char *format,
                      va_list arguments) BUGPACK_PRINTF(3, 0);

static void diagnosev(bp_recorder *recorder, bugpack_level level, const char *format,
                      va_list arguments) {
    static _Thread_local bool is_inside;
    const bp_diagnostics *diagnostics = &recorder->diagnostics;
    char text[BUGPACK_ERROR_MESSAGE_BYTES];
    if (diagnostics->callback == NULL || is_inside ||
        vsnprintf(text, sizeof text, format, arguments) < 0) {
        return;
    }
    for (char *at = text; *at != '\0'; at++) {
        *at = *at == '\n' || *at == '\r' ? ' ' : *at;
    }
    bugpack_error line; /* which is valid UTF-8, whatever a name in it is */
    (void)bp_fail(&line, BUGPACK_OK, "%s", text);
    bp_lock_check_none_held();
    is_inside = true;
    diagnostics->callback(level, line.message, diagnostics->context);
    is_inside = false;
}

void bp_note_diagnose(bp_recorder *recorder, bugpack_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    diagnosev(recorder, level, format, arguments);
    va_end(arguments);
}

void bp_note_log(bp_recorder *recorder, bugpack_level level, const char *format, ...) {
    va_list arguments, copy;
    va_start(arguments, format);
    va_copy(copy, arguments);
    bp_note_logv(recorder, level, own_name, format, arguments);
    diagnosev(recorder, level, format, copy);
    va_end(copy);
    va_end(arguments);
}

void bp_note_notify(bp_recorder *recorder, bugpack_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bp_note_notifyv(recorder, level, own_name, format, arguments);
    va_end(arguments);
}
