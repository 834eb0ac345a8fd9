/*
 * The traffic channels of a session: how they share its traffic budget, and when a closed one gives
 * its memory back.
 *
 * A closed channel stays in reports, oldest first, as long as the budget has room beside the open
 * ones, and up to BP_CHANNEL_CLOSED_MAX of them. Then its rings, its files and its place in the
 * list go, as soon as no snapshot holds it and no thread is inside.
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

/* Closed channels that stay at most: each takes a file and two mappings. */
#define BP_CHANNEL_CLOSED_MAX 512u

/*
 * The host's handle of a channel. Its memory is the session's, and is freed with it. The handle of
 * a closed channel is used again after BUGPACK_CHANNEL_LATE_CALLS more were closed; until then a
 * late call finds that it is closed.
 */
struct bugpack_channel {
    void *session;         /* the host's; the same in all of them */
    _Atomic(size_t) state; /* calls inside, times 2; and 1: closed */
    bp_traffic *traffic;   /* for calls that are inside */
    struct bugpack_channel *next_closed;
};

typedef struct bp_channel_item {
    bp_traffic *traffic;
    bugpack_channel *handle; /* closed: it may be another channel's once this item is gone */
    uint64_t weight;
    uint64_t taken_bytes;  /* of the budget */
    atomic_bool is_closed; /* changed under both locks; read by whoever holds it, too */
    unsigned hold_count;
} bp_channel_item;

typedef struct bp_channels {
    bp_rings *rings;       /* borrowed */
    void *session;         /* for the handles; also the owner of the filters */
    uint64_t budget_bytes; /* of all rings of messages; 0: no traffic is recorded */
    /* Guards what follows. One opening or closing at a time holds it, and makes or removes files.
     */
    bp_lock lock;
    uint64_t weight_sum, open_bytes, closed_bytes;
    uint32_t next_number;
    size_t closed_count;
    bugpack_channel *first_closed, *last_closed; /* handles without an item, the oldest first */
    size_t handle_count;                         /* of these */
    bp_lock list_lock;       /* of what follows; held for a walk along the list. */
    bp_channel_item **items; /* in the order of their opening */
    size_t count, capacity;
    size_t forgotten_max; /* the least bp_traffic_plain_max of those that are gone */
} bp_channels;

void bp_channels_init(bp_channels *channels, uint64_t budget_bytes, bp_rings *rings, void *session);

/*
 * Opens a channel, with a share of the budget as bugpack_channel_options says; no ring is resized
 * later. Errors as bugpack_channel_open has them. Any thread.
 */
bugpack_status bp_channels_open(bp_channels *channels, const char *name,
                                const bugpack_channel_options *options,
                                bugpack_channel **ret_channel, bugpack_error *error);

/* Closes a channel, and waits until its filter has returned. No-op for a closed one. Any thread. */
void bp_channels_close(bp_channels *channels, bugpack_channel *channel);

/* Enters an open channel: false when it is closed. After true the call has to leave. Any thread. */
static inline bool bp_channel_enter(bugpack_channel *channel) {
    size_t state = atomic_fetch_add_explicit(&channel->state, 2, memory_order_acquire);
    if (state % 2 != 0) {
        atomic_fetch_sub_explicit(&channel->state, 2, memory_order_release);
    }
    return state % 2 == 0;
}
static inline void bp_channel_leave(bugpack_channel *channel) {
    atomic_fetch_sub_explicit(&channel->state, 2, memory_order_release);
}

/* bp_rings_note_loss of a channel's rings. It is open or held. Any thread. */
void bp_channels_note_loss(const bp_channels *channels, const bp_traffic *channel, char *reason,
                           size_t reason_bytes);

/* The channels, open and closed, in the order of their opening; none of them goes until they are
 * given back. NO_MEMORY. Any thread. */
typedef struct bp_channel_list {
    bp_channel_item **items;
    size_t count;
} bp_channel_list;
bugpack_status bp_channels_hold(bp_channels *channels, bp_channel_list *ret_list,
                                bugpack_error *error);
void bp_channels_unhold(bp_channels *channels, bp_channel_list *list);

/* bp_traffic_plain_max of the newest channel of this name, closed or not; SIZE_MAX if there was
 * none, and 0 if no traffic is recorded. Of a name that is forgotten it is the least of those that
 * are. `ret_exact`: it has BUGPACK_PAYLOAD_EXACT. Any thread. */
size_t bp_channels_plain_max(bp_channels *channels, const char *name, bool *ret_exact);

/* Ends the session's recording: bp_traffic_close and bp_traffic_end_filter of each channel. */
void bp_channels_end(bp_channels *channels);
void bp_channels_end_filters(bp_channels *channels);

/* No other thread may be inside. */
void bp_channels_release(bp_channels *channels);

#endif
