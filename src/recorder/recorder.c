#include "recorder/recorder.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/recorder_private.h"
#include "recorder/recovery.h"

/* What takes a ring over, and is the recorder's afterwards. */
typedef bugpack_status adopt_ring(bp_recorder *recorder, const bp_recorder_options *options,
                                  bp_ring *ring, bugpack_error *error);

static bugpack_status adopt_log(bp_recorder *recorder, const bp_recorder_options *options,
                                bp_ring *ring, bugpack_error *error) {
    return bp_log_recorder_new(ring, options->log_level, &recorder->log, error);
}

static bugpack_status adopt_notifications(bp_recorder *recorder, const bp_recorder_options *options,
                                          bp_ring *ring, bugpack_error *error) {
    (void)options;
    return bp_notifications_new(ring, &recorder->notifications, error);
}

static bugpack_status adopt_history(bp_recorder *recorder, const bp_recorder_options *options,
                                    bp_ring *ring, bugpack_error *error) {
    return bp_history_new(ring, options->sample_window_ms, &recorder->history, error);
}

/* The parts that have one ring each; those of 0 bytes are off. */
static bugpack_status make_parts(bp_recorder *recorder, const bp_recorder_options *options,
                                 bugpack_error *error) {
    size_t history_bytes =
        options->history_count > 0 ? bp_history_ring_bytes(options->history_count) : 0;
    const struct {
        const char *file;
        size_t ring_bytes;
        adopt_ring *adopt;
    } parts[] = {{BP_RING_FILE_LOG, options->log_ring_bytes, adopt_log},
                 {BP_RING_FILE_NOTIFICATIONS,
                  options->has_notifications ? bp_notifications_ring_bytes() : 0,
                  adopt_notifications},
                 {BP_RING_FILE_HISTORY, history_bytes, adopt_history}};
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof parts / sizeof parts[0]; i++) {
        bp_ring *ring = NULL;
        if (parts[i].ring_bytes == 0) {
            continue;
        }
        status = bp_rings_make(recorder->rings, parts[i].file, parts[i].ring_bytes, &ring, error);
        if (status == BUGPACK_OK) {
            status = parts[i].adopt(recorder, options, ring, error);
            if (status != BUGPACK_OK) {
                bp_rings_drop(recorder->rings, ring);
            }
        }
    }
    return status;
}

bugpack_status bp_recorder_new(const bp_recorder_options *options, bp_recorder **ret_recorder,
                               bugpack_error *error) {
    bp_recorder *recorder = calloc(1, sizeof *recorder);
    if (recorder == NULL || pthread_mutex_init(&recorder->channels_mutex, NULL) != 0) {
        free(recorder);
        return bp_fail_memory(error, "make a recorder");
    }
    recorder->traffic_budget_bytes = options->traffic_budget_bytes;
    bugpack_status status =
        bp_rings_new(options->base_dir, options->memory_reason, options->identity, options->monitor,
                     &recorder->rings, error);
    if (status == BUGPACK_OK) {
        status = make_parts(recorder, options, error);
    }
    if (status != BUGPACK_OK) {
        bp_recorder_free(recorder);
        return status;
    }
    *ret_recorder = recorder;
    return BUGPACK_OK;
}

void bp_recorder_retire(bp_recorder *recorder) {
    if (recorder == NULL || recorder->rings == NULL) {
        return;
    }
    bp_rings_release_guard(recorder->rings);
    for (size_t i = 0; i < recorder->channel_count; i++) {
        bp_traffic_retire(recorder->channels[i]);
    }
    bp_history_free(recorder->history);
    recorder->history = NULL;
    if (recorder->notifications != NULL) {
        bp_notifications_retire(recorder->notifications);
    }
    if (recorder->log != NULL) {
        bp_log_recorder_retire(recorder->log);
    }
    bp_rings_free(recorder->rings);
    recorder->rings = NULL;
}

void bp_recorder_free(bp_recorder *recorder) {
    if (recorder == NULL) {
        return;
    }
    bp_recorder_retire(recorder);
    for (size_t i = 0; i < recorder->channel_count; i++) {
        bp_traffic_free(recorder->channels[i]);
    }
    bp_notifications_free(recorder->notifications);
    bp_log_recorder_free(recorder->log);
    (void)pthread_mutex_destroy(&recorder->channels_mutex);
    free(recorder);
}

bp_log_recorder *bp_recorder_log(bp_recorder *recorder) {
    return recorder->log;
}

bp_notifications *bp_recorder_notifications(bp_recorder *recorder) {
    return recorder->notifications;
}

bp_history *bp_recorder_history(bp_recorder *recorder) {
    return recorder->history;
}
