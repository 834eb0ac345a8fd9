/*
 * The flight recorder of a session: its rings, and snapshots of all of them.
 */
#ifndef BP_RECORDER_RECORDER_H
#define BP_RECORDER_RECORDER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/log.h>
#include <bugpack/session.h>
#include <bugpack/traffic.h>

#include "recorder/channels.h"
#include "recorder/history.h"
#include "recorder/log_recorder.h"
#include "recorder/monitor.h"
#include "recorder/notifications.h"
#include "recorder/session_files.h"
#include "recorder/snapshot.h"
#include "recorder/window.h"
#include "redact/at_call.h"

/* The host's callback for problems (bugpack_options.on_diagnostic). */
typedef struct bp_diagnostics {
    bugpack_diagnostic_callback *callback; /* NULL: none */
    void *context;
} bp_diagnostics;

/* The options of a recorder. Pointers are borrowed for the call. */
typedef struct bp_recorder_options {
    bp_rings_options rings;
    size_t log_ring_bytes; /* 0: no log */
    bugpack_level log_level;
    uint64_t traffic_budget_bytes; /* of all channels together; 0: no traffic */
    void *session;                 /* the host's, for the handles of channels */
    size_t history_count;          /* samples in the ring; 0: no history */
    uint32_t sample_window_ms;     /* what a window of the history is to span */
    bp_diagnostics diagnostics;
} bp_recorder_options;

/* Its parts are NULL where they are off, and are for reading. */
typedef struct bp_recorder {
    bp_diagnostics diagnostics;
    bp_at_call *at_call; /* borrowed, set at the opening; NULL: texts are recorded as they are */
    bp_rings *rings;     /* NULL: closed */
    bp_ring *by_kind[BP_RING_KIND_TRAFFIC]; /* of the next three, whose own they are */
    bp_log_recorder *log;
    bp_notifications *notifications;
    bp_history *history;
    bp_windows windows; /* where there is a history */
    bp_channels channels;
} bp_recorder;

/* Makes the rings. NO_MEMORY, or INVALID for an impossible ring size. */
bugpack_status bp_recorder_new(const bp_recorder_options *options, bp_recorder **ret_recorder,
                               bugpack_error *error);

/*
 * Frees the memory of all rings and channels and removes the session's directory. Other threads may
 * be inside log, notifications and channels, or come later, until bp_recorder_free: their records
 * are refused. No thread may be inside anything else. NULL is fine.
 */
void bp_recorder_close(bp_recorder *recorder);

/* No other thread may be inside. NULL is fine. */
void bp_recorder_free(bp_recorder *recorder);

/* Sets `reason`, if it is "", to one clause that says why the records would not outlive the
 * process, if that was not asked for. */
void bp_recorder_note_loss(bp_recorder *recorder, char *reason, size_t reason_bytes);

/* The bytes of a snapshot of all rings, taken now. Any thread. */
uint64_t bp_recorder_used_bytes(bp_recorder *recorder);

/*
 * Copies what was recorded up to `until_ns` (monotonic) into temporary files in `dir_fd`. Writers
 * go on. A ring that cannot be copied has its reason in its part. `only_channel` limits the traffic
 * to the channel of that name, if there is one. NULL: all channels. `token` is borrowed as long as
 * the snapshot lives; once it is due, copying ends early. Any thread.
 */
void bp_recorder_take_snapshot(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                               int dir_fd, const bp_cancel_token *token, bp_snapshot *ret_snapshot);

/*
 * What the library itself has to say, in the log and the notifications of its session, and to the
 * host.
 */

/*
 * Calls the host's on_diagnostic with one line, on the calling thread. Not inside such a call: what
 * the host causes there would never end. No lock may be held, because the host may call anything.
 */
void bp_note_diagnose(bp_recorder *recorder, bugpack_level level, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* A diagnostic that is also a record of the channel bp_note_channel, "bugpack". Any thread. */
extern const char bp_note_channel[];
void bp_note_log(bp_recorder *recorder, bugpack_level level, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* A notification whose source is "bugpack". */
void bp_note_notify(bp_recorder *recorder, bugpack_level level, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* Records what the host logs, as bp_log_recorder_append does, without secrets where they are to be
 * redacted at the call. A session without a log is fine. */
void bp_note_log_part(bp_recorder *recorder, bugpack_level level, const char *channel,
                      const void *message, size_t message_bytes, unsigned part);

/* The same for the host's own records and notifications, where the format is the host's. */
void bp_note_logv(bp_recorder *recorder, bugpack_level level, const char *channel,
                  const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);
void bp_note_notifyv(bp_recorder *recorder, bugpack_level level, const char *source,
                     const char *format, va_list arguments) BUGPACK_PRINTF(4, 0);

#endif
