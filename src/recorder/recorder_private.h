/*
 * What the files of a recorder share.
 */
#ifndef BP_RECORDER_RECORDER_PRIVATE_H
#define BP_RECORDER_RECORDER_PRIVATE_H

#include <pthread.h>

#include "recorder/recorder.h"
#include "recorder/rings.h"

struct bp_recorder {
    bp_rings *rings;
    bp_log_recorder *log;
    bp_notifications *notifications;
    bp_history *history;
    uint64_t traffic_budget_bytes;

    pthread_mutex_t channels_mutex; /* guards what follows, and making rings after the first ones */
    uint32_t weight_used;
    size_t channel_count;
    bp_traffic *channels[BUGPACK_CHANNEL_MAX];
};

#endif
