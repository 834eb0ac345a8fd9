#include "recorder/recorder.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "platform/thread.h"
#include "ring/ring_reader.h"

/* The parts that have one ring each, and own it once they are made. */
static bugpack_status make_parts(bp_recorder *recorder, const bp_recorder_options *options,
                                 bugpack_error *error) {
    const size_t byte_counts[BP_RING_KIND_TRAFFIC] = {
        [BP_RING_KIND_LOG] = options->log_ring_bytes,
        [BP_RING_KIND_NOTIFICATIONS] = bp_notifications_ring_bytes(),
        [BP_RING_KIND_HISTORY] =
            options->history_count > 0 ? bp_history_ring_bytes(options->history_count) : 0};
    bugpack_status status = BUGPACK_OK;
    for (bp_ring_kind kind = BP_RING_KIND_LOG; kind < BP_RING_KIND_TRAFFIC; kind++) {
        const bp_ring_label label = {.kind = kind};
        bp_ring *ring = NULL;
        if (status != BUGPACK_OK || byte_counts[kind] == 0) {
            continue;
        }
        status = bp_rings_make(recorder->rings, &label, byte_counts[kind], &ring, error);
        if (status == BUGPACK_OK && kind == BP_RING_KIND_LOG) {
            status = bp_log_recorder_new(ring, options->log_level, &recorder->log, error);
        } else if (status == BUGPACK_OK && kind == BP_RING_KIND_NOTIFICATIONS) {
            status = bp_notifications_new(ring, &recorder->notifications, error);
        } else if (status == BUGPACK_OK) {
            status = bp_history_new(ring, options->sample_window_ms, &recorder->history, error);
        }
        if (status != BUGPACK_OK) {
            bp_rings_drop(recorder->rings, ring);
        }
        recorder->by_kind[kind] = status == BUGPACK_OK ? ring : NULL;
    }
    bp_windows_init(&recorder->windows, recorder->history, options->rings.monitor);
    return status;
}

bugpack_status bp_recorder_new(const bp_recorder_options *options, bp_recorder **ret_recorder,
                               bugpack_error *error) {
    bp_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL) {
        return bp_fail_memory(error, "make a recorder");
    }
    recorder->diagnostics = options->diagnostics;
    bugpack_status status = bp_rings_new(&options->rings, &recorder->rings, error);
    if (status != BUGPACK_OK) {
        free(recorder);
        return status;
    }
    bp_channels_init(&recorder->channels, options->traffic_budget_bytes, recorder->rings,
                     options->session);
    status = make_parts(recorder, options, error);
    if (status != BUGPACK_OK) {
        bp_recorder_free(recorder);
        return status;
    }
    *ret_recorder = recorder;
    return BUGPACK_OK;
}

void bp_recorder_close(bp_recorder *recorder) {
    if (recorder == NULL || recorder->rings == NULL) {
        return;
    }
    bp_rings_end(recorder->rings);
    bp_channels_end(&recorder->channels);
    bp_windows_release(&recorder->windows);
    bp_history_free(recorder->history);
    recorder->history = NULL;
    if (recorder->notifications != NULL) {
        bp_notifications_close(recorder->notifications);
    }
    if (recorder->log != NULL) {
        bp_log_recorder_close(recorder->log);
    }
    bp_rings_free(recorder->rings);
    recorder->rings = NULL;
}

void bp_recorder_free(bp_recorder *recorder) {
    if (recorder != NULL) {
        bp_recorder_close(recorder);
        bp_channels_release(&recorder->channels);
        bp_notifications_free(recorder->notifications);
        bp_log_recorder_free(recorder->log);
        free(recorder);
    }
}

void bp_recorder_note_loss(bp_recorder *recorder, char *reason, size_t reason_bytes) {
    for (bp_ring_kind i = BP_RING_KIND_LOG; i < BP_RING_KIND_TRAFFIC; i++) {
        bp_rings_note_loss(recorder->rings, recorder->by_kind[i], reason, reason_bytes);
    }
}

static void copy_channel(bp_recorder *recorder, bp_traffic *channel, uint64_t until_ns, int dir_fd,
                         bp_snapshot *snapshot) {
    bp_snapshot_part *traffic = &snapshot->parts[BP_RING_KIND_TRAFFIC];
    bugpack_error *error = &traffic->error;
    bp_traffic_snapshot *copy =
        error->status == BUGPACK_OK ? bp_snapshot_next_channel(snapshot, dir_fd) : NULL;
    if (copy != NULL && error->status == BUGPACK_OK &&
        bp_traffic_take_snapshot(channel, until_ns, snapshot->wall_offset_ns, &traffic->records,
                                 copy, error) == BUGPACK_OK) {
        snapshot->channel_count++;
    }
    bp_channels_note_loss(&recorder->channels, channel, traffic->loss_reason,
                          sizeof traffic->loss_reason);
}

static bool is_called(const bp_traffic *channel, const char *name) {
    return strcmp(bp_traffic_identity_of(channel)->name, name) == 0;
}

/* All channels of a name: those of earlier connections, too. */
static void copy_traffic(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                         int dir_fd, bp_snapshot *snapshot) {
    bp_snapshot_part *traffic = &snapshot->parts[BP_RING_KIND_TRAFFIC];
    bp_channel_list list;
    bool has_only = false;
    if (bp_channels_hold(&recorder->channels, &list, &traffic->error) != BUGPACK_OK) {
        traffic->is_on = true;
        return;
    }
    traffic->is_on = list.count > 0;
    for (size_t i = 0; i < list.count && only_channel != NULL; i++) {
        has_only = has_only || is_called(list.items[i]->traffic, only_channel);
    }
    for (size_t i = 0; i < list.count; i++) {
        bp_traffic *channel = list.items[i]->traffic;
        if (!has_only || is_called(channel, only_channel)) {
            copy_channel(recorder, channel, until_ns, dir_fd, snapshot);
        }
    }
    bp_channels_unhold(&recorder->channels, &list);
    if (snapshot->channels != NULL && traffic->error.status == BUGPACK_OK) {
        (void)bp_temp_file_flush(&traffic->records, &traffic->error);
    }
}

uint64_t bp_recorder_used_bytes(bp_recorder *recorder) {
    uint64_t used_bytes = 0;
    for (bp_ring_kind i = BP_RING_KIND_LOG; i < BP_RING_KIND_TRAFFIC; i++) {
        used_bytes += recorder->by_kind[i] != NULL ? bp_ring_used_bytes(recorder->by_kind[i]) : 0;
    }
    bp_channel_list list;
    if (bp_channels_hold(&recorder->channels, &list, NULL) != BUGPACK_OK) {
        return used_bytes;
    }
    for (size_t i = 0; i < list.count; i++) {
        bp_ring *pins = bp_traffic_pins(list.items[i]->traffic);
        used_bytes += bp_ring_used_bytes(bp_traffic_ring(list.items[i]->traffic));
        used_bytes += pins != NULL ? bp_ring_used_bytes(pins) : 0;
    }
    bp_channels_unhold(&recorder->channels, &list);
    return used_bytes;
}

void bp_recorder_take_snapshot(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                               int dir_fd, const bp_cancel_token *token,
                               bp_snapshot *ret_snapshot) {
    bp_instant now = bp_clock_now();
    bp_snapshot_init(ret_snapshot, token, now.wall_ns - now.monotonic_ns);
    /* Traffic first: its rings turn over fastest. */
    copy_traffic(recorder, only_channel, until_ns, dir_fd, ret_snapshot);
    for (bp_ring_kind i = BP_RING_KIND_LOG; i < BP_RING_KIND_TRAFFIC; i++) {
        bp_snapshot_part *part = &ret_snapshot->parts[i];
        bp_ring *ring = recorder->by_kind[i];
        part->is_on = ring != NULL;
        if (part->is_on) {
            (void)bp_ring_copy_to_file(ring, until_ns, dir_fd, token, &part->records, &part->view,
                                       &part->error);
            bp_rings_note_loss(recorder->rings, ring, part->loss_reason, sizeof part->loss_reason);
        }
    }
}

const char bp_note_channel[] = "bugpack";

void bp_note_log_part(bp_recorder *recorder, bugpack_level level, const char *channel,
                      const void *message, size_t message_bytes, unsigned part) {
    /* The bytes of the next character stay that a cut may need. */
    enum { enough_bytes = BUGPACK_LOG_MESSAGE_MAX_BYTES + 4 };
    bp_log_recorder *log = recorder->log;
    bp_clean_text clean;
    if (log == NULL || !bp_log_recorder_wants(log, level)) {
        return;
    }
    if (recorder->at_call == NULL) {
        bp_log_recorder_append(log, level, channel, message, message_bytes, part);
        return;
    }
    if (message_bytes > enough_bytes) {
        message_bytes = enough_bytes;
        part |= BP_PART_WAS_CUT;
    }
    if (bp_at_call_begin(recorder->at_call, bp_thread_id(), channel, part, message, message_bytes,
                         &clean)) {
        bp_log_recorder_append(log, level, channel, clean.bytes, clean.byte_count, part);
        bp_at_call_end(&clean);
    }
}

void bp_note_logv(bp_recorder *recorder, bugpack_level level, const char *channel,
                  const char *format, va_list arguments) {
    if (recorder->log == NULL || !bp_log_recorder_wants(recorder->log, level)) {
        return; /* so that it is not formatted */
    }
    /* One character more than is recorded, so that the cut sees whether it would split one. */
    char message[BUGPACK_LOG_MESSAGE_MAX_BYTES + 4 + 1];
    int length = vsnprintf(message, sizeof message, format, arguments);
    if (length < 0) {
        return;
    }
    bool was_cut = (size_t)length >= sizeof message;
    size_t message_bytes = was_cut ? sizeof message - 1 : (size_t)length;
    bp_note_log_part(recorder, level, channel, message, message_bytes,
                     was_cut ? BP_PART_WAS_CUT : 0);
}

void bp_note_notifyv(bp_recorder *recorder, bugpack_level level, const char *source,
                     const char *format, va_list arguments) {
    char text[BUGPACK_NOTIFICATION_MAX_BYTES + 2]; /* one more, so that a cut is seen */
    int length = vsnprintf(text, sizeof text, format, arguments);
    uint64_t now_ns = bp_clock_monotonic_ns();
    bp_clean_text clean;
    if (length < 0) {
        return;
    }
    size_t text_bytes = (size_t)length < sizeof text ? (size_t)length : sizeof text - 1;
    if (recorder->at_call == NULL) {
        bp_notifications_add(recorder->notifications, now_ns, level, source, text, text_bytes);
    } else if (bp_at_call_begin(recorder->at_call, bp_thread_id(), source, 0, text, text_bytes,
                                &clean)) {
        bp_notifications_add(recorder->notifications, now_ns, level, source, clean.bytes,
                             clean.byte_count);
        bp_at_call_end(&clean);
    }
}

BUGPACK_PRINTF(3, 0)
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
    bp_note_logv(recorder, level, bp_note_channel, format, arguments);
    diagnosev(recorder, level, format, copy);
    va_end(copy);
    va_end(arguments);
}

void bp_note_notify(bp_recorder *recorder, bugpack_level level, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bp_note_notifyv(recorder, level, bp_note_channel, format, arguments);
    va_end(arguments);
}
