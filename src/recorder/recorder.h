/*
 * The flight recorder of a session: all its rings, and freezing them together.
 */
#ifndef BP_RECORDER_RECORDER_H
#define BP_RECORDER_RECORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/log.h>
#include <bugpack/traffic.h>

#include "recorder/history.h"
#include "recorder/log_recorder.h"
#include "recorder/monitor.h"
#include "recorder/notifications.h"
#include "recorder/session_dir.h"
#include "recorder/snapshot.h"
#include "recorder/traffic.h"

/* What to record. */
typedef struct bp_recorder_options {
    const char *base_dir;      /* below which the session's directory is made; NULL: memory only */
    const char *memory_reason; /* why base_dir is NULL; NULL where memory is what was asked for */
    const bp_session_identity *identity; /* borrowed for the call, as base_dir is */
    size_t log_ring_bytes;               /* 0: no log */
    bugpack_level log_level;
    bool has_notifications;
    uint64_t traffic_budget_bytes; /* of all channels together; 0: no traffic */
    size_t history_count;          /* samples kept; 0: no history */
    uint32_t sample_window_ms;     /* what a window of the history must span */
    bp_monitor *monitor;           /* guards the ring files; NULL: memory only */
} bp_recorder_options;

typedef struct bp_recorder bp_recorder;

/* Makes the rings. NO_MEMORY, or INVALID for a size that no ring has. */
bugpack_status bp_recorder_new(const bp_recorder_options *options, bp_recorder **ret_recorder,
                               bugpack_error *error);

/*
 * Gives the memory of all rings and channels back, and removes the session's directory. What is
 * left, about 1 KiB and as much for each channel, refuses all that is recorded until it is freed:
 * other threads may be inside log, notifications and channels, or come later. In everything else
 * there may be none. NULL is fine.
 */
void bp_recorder_retire(bp_recorder *recorder);

/* Frees it, retired or not. No other thread may be inside. NULL is fine. */
void bp_recorder_free(bp_recorder *recorder);

/* The parts, borrowed; NULL where they are off. */
bp_log_recorder *bp_recorder_log(bp_recorder *recorder);
bp_notifications *bp_recorder_notifications(bp_recorder *recorder);
bp_history *bp_recorder_history(bp_recorder *recorder);

/*
 * Opens a channel: INVALID when the name is taken or there are BUGPACK_CHANNEL_MAX, NO_MEMORY when
 * the weights are used up. The channel is the recorder's. Any thread.
 */
bugpack_status bp_recorder_open_channel(bp_recorder *recorder, const char *name,
                                        const bugpack_channel_options *options,
                                        bp_traffic **ret_channel, bugpack_error *error);

/* The channels in the order of their opening, borrowed; how many. Any thread. */
size_t bp_recorder_list_channels(bp_recorder *recorder,
                                 const bp_traffic *ret_list[BUGPACK_CHANNEL_MAX]);

/*
 * Copies what was recorded up to `until_ns` (monotonic) into spools in `dir_fd`. Writers go on. A
 * ring that cannot be copied has its reason in its part. With `only_channel` the traffic is that of
 * the channel with this name; of all, where none has it: frozen->traffic_note says which. NULL: of
 * all. `halt` is borrowed for as long as the frozen view; once it is due, the copying ends early.
 * Any thread.
 */
void bp_recorder_take_snapshot(bp_recorder *recorder, const char *only_channel, uint64_t until_ns,
                               int dir_fd, const bp_cancel_token *token, bp_snapshot *ret_snapshot);

#endif
