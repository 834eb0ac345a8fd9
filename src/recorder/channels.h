/*
 * The traffic channels of a session, and how they share its traffic budget.
 */
#ifndef BP_RECORDER_CHANNELS_H
#define BP_RECORDER_CHANNELS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/lock.h"
#include "recorder/rings.h"
#include "recorder/traffic.h"

typedef struct bp_channels {
    bp_rings *rings;       /* borrowed */
    uint64_t budget_bytes; /* of all rings of messages; 0: no traffic is recorded */
    /*
     * One opening at a time, which creates files and takes the locks of bp_rings and the file
     * guard. Readers take none: channels are only added, and `count` is stored last.
     */
    bp_lock lock;
    uint64_t weight_sum, used_bytes;
    _Atomic size_t count;
    bp_traffic *list[BUGPACK_CHANNEL_MAX];
    void *users[BUGPACK_CHANNEL_MAX];
    atomic_bool is_ended[BUGPACK_CHANNEL_MAX]; /* the host has closed it */
} bp_channels;

/* NO_MEMORY; then there is nothing to release. */
bugpack_status bp_channels_init(bp_channels *channels, uint64_t budget_bytes, bp_rings *rings,
                                bugpack_error *error);

/*
 * Opens a channel, with a share of the budget as bugpack_channel_options says; no ring is resized
 * later. `user` is what bp_channels_user returns. Errors as bugpack_channel_open has them. Any
 * thread.
 */
bugpack_status bp_channels_open(bp_channels *channels, const char *name,
                                const bugpack_channel_options *options, void *user,
                                bp_traffic **ret_channel, bugpack_error *error);

/* bp_rings_note_loss of a channel's rings. Any thread. */
void bp_channels_note_loss(const bp_channels *channels, const bp_traffic *channel, char *reason,
                           size_t reason_bytes);

/* The channels so far, in the order of their opening; borrowed. Any thread. */
size_t bp_channels_list(const bp_channels *channels, bp_traffic *const **ret_list);

/* The `user` of the channel at this index of the list. Any thread. */
void *bp_channels_user(const bp_channels *channels, size_t at);

/* Notes that the host has closed a channel; its messages remain. Any thread. */
void bp_channels_end(bp_channels *channels, const bp_traffic *channel);

/* The name of the channel at this index: "" if the host has closed it, NULL after the last. Any
 * thread. */
const char *bp_channels_open_name(const bp_channels *channels, size_t at);

/* bp_traffic_plain_max of the channel of this name, closed or not; SIZE_MAX if there is none, and 0
 * if no traffic is recorded. Any thread. */
size_t bp_channels_plain_max(const bp_channels *channels, const char *name);

/* Closes each channel (bp_traffic_close); the channels remain. */
void bp_channels_close(bp_channels *channels);

/* No other thread may be inside. */
void bp_channels_release(bp_channels *channels);

#endif
