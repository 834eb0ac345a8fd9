/*
 * The channels of a recorder: their share of the budget, and their rings.
 */
#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "recorder/recorder_private.h"
#include "recorder/recovery.h"

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

size_t bp_recorder_list_channels(bp_recorder *recorder,
                                 const bp_traffic *ret_list[BUGPACK_CHANNEL_MAX]) {
    (void)pthread_mutex_lock(&recorder->channels_mutex);
    size_t count = recorder->channel_count;
    for (size_t i = 0; i < count; i++) {
        ret_list[i] = recorder->channels[i];
    }
    (void)pthread_mutex_unlock(&recorder->channels_mutex);
    return count;
}
