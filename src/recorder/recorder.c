#include "recorder/recorder.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "recorder/rings.h"
#include "recorder/salvage.h"

struct bp_recorder {
    bp_rings *rings;
    bp_log_recorder *log;
    bp_notifications *notifications;
    bp_history *history;
    uint64_t traffic_budget_bytes;

    pthread_mutex_t channels_mutex;
    bool is_closed;
    uint32_t weight_used;
    size_t channel_count;
    bp_traffic *channels[BUGPACK_CHANNEL_MAX];
};

static bugpack_status make_log(bp_recorder *recorder, const bp_recorder_options *options,
                               bugpack_error *error) {
    bp_ring *ring = NULL;
    if (options->log_ring_bytes == 0) {
        return BUGPACK_OK;
    }
    bugpack_status status =
        bp_rings_make(recorder->rings, BP_RING_FILE_LOG, options->log_ring_bytes, &ring, error);
    if (status == BUGPACK_OK) {
        status = bp_log_recorder_new(ring, options->log_level, &recorder->log, error);
        if (status != BUGPACK_OK) {
            bp_rings_drop(recorder->rings, ring);
        }
    }
    return status;
}

static bugpack_status make_notifications(bp_recorder *recorder, bugpack_error *error) {
    bp_ring *ring = NULL;
    bugpack_status status = bp_rings_make(recorder->rings, BP_RING_FILE_NOTIFICATIONS,
                                          bp_notifications_ring_bytes(), &ring, error);
    if (status == BUGPACK_OK) {
        status = bp_notifications_new(ring, &recorder->notifications, error);
        if (status != BUGPACK_OK) {
            bp_rings_drop(recorder->rings, ring);
        }
    }
    return status;
}

static bugpack_status make_history(bp_recorder *recorder, const bp_recorder_options *options,
                                   bugpack_error *error) {
    bp_ring *ring = NULL;
    if (options->history_count == 0) {
        return BUGPACK_OK;
    }
    bugpack_status status =
        bp_rings_make(recorder->rings, BP_RING_FILE_HISTORY,
                      bp_history_ring_bytes(options->history_count), &ring, error);
    if (status == BUGPACK_OK) {
        status = bp_history_new(ring, options->sample_window_ms, &recorder->history, error);
        if (status != BUGPACK_OK) {
            bp_rings_drop(recorder->rings, ring);
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
    bugpack_status status = bp_rings_new(options->base_dir, options->memory_reason,
                                         options->identity, &recorder->rings, error);
    if (status == BUGPACK_OK) {
        status = make_log(recorder, options, error);
    }
    if (status == BUGPACK_OK && options->has_notifications) {
        status = make_notifications(recorder, error);
    }
    if (status == BUGPACK_OK) {
        status = make_history(recorder, options, error);
    }
    if (status != BUGPACK_OK) {
        bp_recorder_free(recorder);
        return status;
    }
    *ret_recorder = recorder;
    return BUGPACK_OK;
}

void bp_recorder_free(bp_recorder *recorder) {
    if (recorder == NULL) {
        return;
    }
    if (recorder->rings != NULL) {
        bp_rings_release_guard(recorder->rings);
    }
    for (size_t i = 0; i < recorder->channel_count; i++) {
        bp_traffic_free(recorder->channels[i]);
    }
    bp_history_free(recorder->history);
    bp_notifications_free(recorder->notifications);
    bp_log_recorder_free(recorder->log);
    bp_rings_free(recorder->rings);
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

static bool is_name_taken(const bp_recorder *recorder, const char *name) {
    bool is_taken = false;
    for (size_t i = 0; i < recorder->channel_count; i++) {
        is_taken =
            is_taken || strcmp(bp_traffic_identity_of(recorder->channels[i])->name, name) == 0;
    }
    return is_taken;
}

/* Both rings and the channel over them. The mutex is held. */
static bugpack_status make_channel(bp_recorder *recorder, const char *name,
                                   const bugpack_channel_options *options, bp_traffic **ret_channel,
                                   bugpack_error *error) {
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic_identity_init(&identity, name, (uint32_t)recorder->channel_count, options);
    uint64_t ring_bytes =
        recorder->traffic_budget_bytes / BUGPACK_TRAFFIC_WEIGHT_TOTAL * options->weight;
    char file[32];
    (void)snprintf(file, sizeof file, BP_RING_FILE_TRAFFIC, (unsigned)identity.number);
    bugpack_status status = bp_rings_make(recorder->rings, file, (size_t)ring_bytes, &ring, error);
    if (status == BUGPACK_OK && options->pin_bytes > 0) {
        (void)snprintf(file, sizeof file, BP_RING_FILE_PINS, (unsigned)identity.number);
        status = bp_rings_make(recorder->rings, file,
                               bp_traffic_pins_ring_bytes(options->pin_bytes), &pins, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_traffic_new(&identity, options, ring, pins, ret_channel, error);
    }
    if (status != BUGPACK_OK) {
        bp_rings_drop(recorder->rings, ring);
        bp_rings_drop(recorder->rings, pins);
        return status;
    }
    (void)snprintf(file, sizeof file, BP_RING_FILE_CHANNEL, (unsigned)identity.number);
    bp_rings_note(recorder->rings, file, bp_traffic_identity_of(*ret_channel), sizeof identity);
    return BUGPACK_OK;
}

static bugpack_status check_channel(const bp_recorder *recorder, const char *name,
                                    const bugpack_channel_options *options, bugpack_error *error) {
    if (recorder->traffic_budget_bytes == 0) {
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "this session keeps no traffic");
    }
    if (options->weight == 0 ||
        options->weight > BUGPACK_TRAFFIC_WEIGHT_TOTAL - recorder->weight_used) {
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY,
                       "channel \"%s\" has the weight %u, and %u of %u are left", name,
                       (unsigned)options->weight,
                       (unsigned)(BUGPACK_TRAFFIC_WEIGHT_TOTAL - recorder->weight_used),
                       BUGPACK_TRAFFIC_WEIGHT_TOTAL);
    }
    if (recorder->channel_count == BUGPACK_CHANNEL_MAX || is_name_taken(recorder, name)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "channel \"%s\": %s", name,
                       recorder->channel_count == BUGPACK_CHANNEL_MAX ? "there are too many"
                                                                      : "the name is taken");
    }
    return BUGPACK_OK;
}

bugpack_status bp_recorder_open_channel(bp_recorder *recorder, const char *name,
                                        const bugpack_channel_options *options,
                                        bp_traffic **ret_channel, bugpack_error *error) {
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    bugpack_status status = check_channel(recorder, name, options, error);
    if (status == BUGPACK_OK) {
        status = make_channel(recorder, name, options, ret_channel, error);
    }
    if (status == BUGPACK_OK) {
        recorder->channels[recorder->channel_count++] = *ret_channel;
        recorder->weight_used += options->weight;
    }
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
    return status;
}

static void freeze_part(bp_ring *ring, uint64_t until_ns, int dir_fd, bp_frozen_part *part) {
    part->is_on = true;
    part->records = (bp_spool)BP_SPOOL_INIT;
    part->error = (bugpack_error)BUGPACK_ERROR_INIT;
    bugpack_status status = bp_spool_open(&part->records, dir_fd, UINT64_MAX, &part->error);
    if (status == BUGPACK_OK) {
        status =
            bp_ring_copy(ring, until_ns, bp_spool_sink, &part->records, &part->view, &part->error);
    }
    if (status == BUGPACK_OK) {
        (void)bp_spool_flush(&part->records, &part->error);
    }
}

/* Channels are only ever added, so the count under the lock is all that has to be looked at. */
static void freeze_traffic(bp_recorder *recorder, uint64_t until_ns, int dir_fd,
                           bp_frozen *frozen) {
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    size_t count = recorder->channel_count;
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
    frozen->has_traffic = count > 0;
    for (size_t i = 0; i < count && frozen->traffic_error.status == BUGPACK_OK; i++) {
        if (bp_traffic_freeze(recorder->channels[i], until_ns, frozen->wall_offset_ns, dir_fd,
                              &frozen->channels[frozen->channel_count],
                              &frozen->traffic_error) == BUGPACK_OK) {
            frozen->channel_count++;
        }
    }
}

void bp_recorder_freeze(bp_recorder *recorder, uint64_t until_ns, int dir_fd,
                        bp_frozen *ret_frozen) {
    bp_instant now = bp_clock_now();
    memset(ret_frozen, 0, sizeof *ret_frozen);
    ret_frozen->wall_offset_ns = now.wall_ns - now.monotonic_ns;
    (void)snprintf(ret_frozen->memory_reason, sizeof ret_frozen->memory_reason, "%s",
                   bp_rings_memory_reason(recorder->rings));
    /* Traffic first: its rings turn over fastest. */
    freeze_traffic(recorder, until_ns, dir_fd, ret_frozen);
    if (recorder->log != NULL) {
        freeze_part(bp_log_recorder_ring(recorder->log), until_ns, dir_fd, &ret_frozen->log);
    }
    if (recorder->notifications != NULL) {
        freeze_part(bp_notifications_ring(recorder->notifications), until_ns, dir_fd,
                    &ret_frozen->notifications);
    }
    if (recorder->history != NULL) {
        freeze_part(bp_history_ring(recorder->history), until_ns, dir_fd, &ret_frozen->history);
    }
}
