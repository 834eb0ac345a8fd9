/*
 * What the library itself has to say, in the log and the notifications of its session, and to the
 * host.
 */
#ifndef BP_RECORDER_NOTE_H
#define BP_RECORDER_NOTE_H

#include <stdarg.h>

#include <bugpack/log.h>

#include "recorder/recorder.h"

/*
 * Calls the host's on_diagnostic with one line, on the calling thread. Not inside such a call: what
 * the host causes there would never end. No lock may be held, because the host may call anything.
 */
void bp_note_diagnose(bp_recorder *recorder, bugpack_level level, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* A diagnostic that is also a record of the channel "bugpack". Any thread. */
void bp_note_log(bp_recorder *recorder, bugpack_level level, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* A notification whose source is "bugpack". */
void bp_note_notify(bp_recorder *recorder, bugpack_level level, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* The same for the host's own records and notifications, where the format is the host's. */
void bp_note_logv(bp_recorder *recorder, bugpack_level level, const char *channel,
                  const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);
void bp_note_notifyv(bp_recorder *recorder, bugpack_level level, const char *source,
                     const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);

#endif
