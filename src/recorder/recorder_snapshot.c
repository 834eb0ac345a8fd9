#include "recorder/recorder.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "recorder/recorder_private.h"

static void copy_part(bp_ring *ring, uint64_t until_ns, int dir_fd, const bp_cancel_token *token,
                      bp_snapshot_part *part) {
    part->is_on = true;
    part->records = (bp_temp_file)BP_TEMP_FILE_INIT;
    part->error = (bugpack_error)BUGPACK_ERROR_INIT;
    bugpack_status status = bp_temp_file_open(&part->records, dir_fd, UINT64_MAX, &part->error);
    part->records.token = token;
    if (status == BUGPACK_OK) {
        status = bp_ring_copy(ring, until_ns, bp_temp_file_sink, &part->records, &part->view,
                              &part->error);
    }
    if (status == BUGPACK_OK) {
        (void)bp_temp_file_flush(&part->records, &part->error);
    }
}

/* Keeps the first reason of those that an artefact's rings have. The mutex is held. */
static void note_loss(const bp_recorder *recorder, const bp_ring *ring, char *reason,
                      size_t reason_bytes) {
    if (ring != NULL && reason[0] == '\0') {
        (void)snprintf(reason, reason_bytes, "%s", bp_rings_loss_reason(recorder->rings, ring));
    }
}

/* The channel of that name; NULL when all are wanted. The ledger gets to know what was chosen. */
static bp_traffic *find_only(const bp_recorder *recorder, size_t count, const char *name,
                             bp_snapshot *snapshot) {
    if (name == NULL || count == 0) {
        return NULL;
    }
    size_t i = 0;
    while (i < count && strcmp(bp_traffic_identity_of(recorder->channels[i])->name, name) != 0) {
        i++;
    }
    (void)snprintf(snapshot->traffic_note, sizeof snapshot->traffic_note,
                   i < count ? "the channel \"%.100s\" alone"
                             : "no channel is called \"%.100s\": these are all",
                   name);
    return i < count ? recorder->channels[i] : NULL;
}

/* Channels are only ever added, so the count under the lock is all that has to be looked at. */
static void copy_traffic(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                         int dir_fd, bp_snapshot *snapshot) {
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    size_t count = recorder->channel_count;
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
    snapshot->has_traffic = count > 0;
    bp_traffic *only = find_only(recorder, count, only_channel, snapshot);
    for (size_t i = 0; i < count && snapshot->traffic_error.status == BUGPACK_OK; i++) {
        if (only != NULL && recorder->channels[i] != only) {
            continue;
        }
        if (bp_traffic_take_snapshot(recorder->channels[i], until_ns, snapshot->wall_offset_ns,
                                     dir_fd, snapshot->token,
                                     &snapshot->channels[snapshot->channel_count],
                                     &snapshot->traffic_error) == BUGPACK_OK) {
            snapshot->channel_count++;
        }
    }
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    for (size_t i = 0; i < count; i++) {
        const bp_ring *const rings[] = {bp_traffic_ring(recorder->channels[i]),
                                        bp_traffic_pins(recorder->channels[i])};
        note_loss(recorder, rings[0], snapshot->traffic_loss_reason,
                  sizeof snapshot->traffic_loss_reason);
        note_loss(recorder, rings[1], snapshot->traffic_loss_reason,
                  sizeof snapshot->traffic_loss_reason);
    }
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
}

void bp_recorder_take_snapshot(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                               int dir_fd, const bp_cancel_token *token,
                               bp_snapshot *ret_snapshot) {
    bp_instant now = bp_clock_now();
    memset(ret_snapshot, 0, sizeof *ret_snapshot);
    ret_snapshot->token = token;
    ret_snapshot->wall_offset_ns = now.wall_ns - now.monotonic_ns;
    /* Traffic first: its rings turn over fastest. */
    copy_traffic(recorder, only_channel, until_ns, dir_fd, ret_snapshot);
    const struct {
        bp_ring *ring;
        bp_snapshot_part *part;
    } parts[] = {
        {recorder->log != NULL ? bp_log_recorder_ring(recorder->log) : NULL, &ret_snapshot->log},
        {recorder->notifications != NULL ? bp_notifications_ring(recorder->notifications) : NULL,
         &ret_snapshot->notifications},
        {recorder->history != NULL ? bp_history_ring(recorder->history) : NULL,
         &ret_snapshot->history}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bp_snapshot_part *part = parts[i].part;
        if (parts[i].ring != NULL) {
            copy_part(parts[i].ring, until_ns, dir_fd, token, part);
            (void)pthread_mutex_lock(&recorder->channels_mutex);
            note_loss(recorder, parts[i].ring, part->loss_reason, sizeof part->loss_reason);
            (void)pthread_mutex_unlock(&recorder->channels_mutex);
        }
    }
}
