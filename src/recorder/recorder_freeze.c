#include "recorder/recorder.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "recorder/recorder_private.h"

static void freeze_part(bp_ring *ring, uint64_t until_ns, int dir_fd, const bp_halt *halt,
                        bp_frozen_part *part) {
    part->is_on = true;
    part->records = (bp_spool)BP_SPOOL_INIT;
    part->error = (bugpack_error)BUGPACK_ERROR_INIT;
    bugpack_status status = bp_spool_open(&part->records, dir_fd, UINT64_MAX, &part->error);
    part->records.halt = halt;
    if (status == BUGPACK_OK) {
        status =
            bp_ring_copy(ring, until_ns, bp_spool_sink, &part->records, &part->view, &part->error);
    }
    if (status == BUGPACK_OK) {
        (void)bp_spool_flush(&part->records, &part->error);
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
                             bp_frozen *frozen) {
    if (name == NULL || count == 0) {
        return NULL;
    }
    size_t i = 0;
    while (i < count && strcmp(bp_traffic_identity_of(recorder->channels[i])->name, name) != 0) {
        i++;
    }
    (void)snprintf(frozen->traffic_note, sizeof frozen->traffic_note,
                   i < count ? "the channel \"%.100s\" alone"
                             : "no channel is called \"%.100s\": these are all",
                   name);
    return i < count ? recorder->channels[i] : NULL;
}

/* Channels are only ever added, so the count under the lock is all that has to be looked at. */
static void freeze_traffic(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                           int dir_fd, bp_frozen *frozen) {
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    size_t count = recorder->channel_count;
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
    frozen->has_traffic = count > 0;
    bp_traffic *only = find_only(recorder, count, only_channel, frozen);
    for (size_t i = 0; i < count && frozen->traffic_error.status == BUGPACK_OK; i++) {
        if (only != NULL && recorder->channels[i] != only) {
            continue;
        }
        if (bp_traffic_freeze(recorder->channels[i], until_ns, frozen->wall_offset_ns, dir_fd,
                              frozen->halt, &frozen->channels[frozen->channel_count],
                              &frozen->traffic_error) == BUGPACK_OK) {
            frozen->channel_count++;
        }
    }
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    for (size_t i = 0; i < count; i++) {
        const bp_ring *const rings[] = {bp_traffic_ring(recorder->channels[i]),
                                        bp_traffic_pins(recorder->channels[i])};
        note_loss(recorder, rings[0], frozen->traffic_loss_reason,
                  sizeof frozen->traffic_loss_reason);
        note_loss(recorder, rings[1], frozen->traffic_loss_reason,
                  sizeof frozen->traffic_loss_reason);
    }
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
}

void bp_recorder_freeze(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                        int dir_fd, const bp_halt *halt, bp_frozen *ret_frozen) {
    bp_instant now = bp_clock_now();
    memset(ret_frozen, 0, sizeof *ret_frozen);
    ret_frozen->halt = halt;
    ret_frozen->wall_offset_ns = now.wall_ns - now.monotonic_ns;
    /* Traffic first: its rings turn over fastest. */
    freeze_traffic(recorder, only_channel, until_ns, dir_fd, ret_frozen);
    const struct {
        bp_ring *ring;
        bp_frozen_part *part;
    } parts[] = {
        {recorder->log != NULL ? bp_log_recorder_ring(recorder->log) : NULL, &ret_frozen->log},
        {recorder->notifications != NULL ? bp_notifications_ring(recorder->notifications) : NULL,
         &ret_frozen->notifications},
        {recorder->history != NULL ? bp_history_ring(recorder->history) : NULL,
         &ret_frozen->history}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bp_frozen_part *part = parts[i].part;
        if (parts[i].ring != NULL) {
            freeze_part(parts[i].ring, until_ns, dir_fd, halt, part);
            (void)pthread_mutex_lock(&recorder->channels_mutex);
            note_loss(recorder, parts[i].ring, part->loss_reason, sizeof part->loss_reason);
            (void)pthread_mutex_unlock(&recorder->channels_mutex);
        }
    }
}
