#include "trigger/gaps_private.h"

/* Remembers why, and writes nothing when it is the same as before: many threads may be here. */
static void hold(bp_gap *gap, bp_gap_hold why) {
    if (atomic_load_explicit(&gap->hold, memory_order_relaxed) != (unsigned)why) {
        atomic_store_explicit(&gap->hold, (unsigned)why, memory_order_relaxed);
    }
}

/* True for the first who asks. */
static bool is_first(atomic_bool *is_told) {
    return !atomic_load_explicit(is_told, memory_order_relaxed) &&
           !atomic_exchange_explicit(is_told, true, memory_order_relaxed);
}

static bp_gap_occurrence refuse_by_cap(bp_gaps *gaps, bp_gap *gap) {
    hold(gap, BP_GAP_HELD_BY_CAP);
    return is_first(&gaps->is_told) ? BP_GAP_CAP : BP_GAP_COUNTED;
}

static bp_gap_occurrence refuse_by_channel(bp_gap *gap) {
    hold(gap, BP_GAP_HELD_BY_CHANNEL_CAP);
    return is_first(&gap->channel->is_told) ? BP_GAP_CHANNEL_CAP : BP_GAP_COUNTED;
}

static bool is_taken(const atomic_uint *place_count, uint32_t cap) {
    return atomic_load_explicit(place_count, memory_order_relaxed) >= cap;
}

bp_gap_occurrence bp_gaps_take_place(bp_gaps *gaps, bp_gap *gap, bool is_enabled) {
    if (!is_enabled) {
        hold(gap, BP_GAP_HELD_OFF);
        return BP_GAP_COUNTED;
    }
    /* Without the lock first: a key that the cap holds back is seen as often as any other. */
    bool is_capped = is_taken(&gaps->place_count, gaps->options.cap);
    bool is_channel_capped = is_taken(&gap->channel->place_count, gaps->options.channel_cap);
    bool is_taker = false;
    if (!is_capped && !is_channel_capped) {
        (void)pthread_mutex_lock(&gaps->mutex);
        is_capped = is_taken(&gaps->place_count, gaps->options.cap);
        is_channel_capped = is_taken(&gap->channel->place_count, gaps->options.channel_cap);
        is_taker = !is_capped && !is_channel_capped &&
                   atomic_load_explicit(&gap->state, memory_order_relaxed) == BP_GAP_OPEN;
        if (is_taker) {
            atomic_fetch_add_explicit(&gaps->place_count, 1, memory_order_relaxed);
            atomic_fetch_add_explicit(&gap->channel->place_count, 1, memory_order_relaxed);
            gaps->pending_count++;
            atomic_store_explicit(&gap->state, BP_GAP_PENDING, memory_order_relaxed);
        }
        (void)pthread_mutex_unlock(&gaps->mutex);
    }
    if (is_capped) {
        return refuse_by_cap(gaps, gap);
    }
    if (is_channel_capped) {
        return refuse_by_channel(gap);
    }
    return is_taker ? BP_GAP_REPORT : BP_GAP_COUNTED;
}

void bp_gaps_settle(bp_gaps *gaps, bp_gap *gap, bool is_written) {
    (void)pthread_mutex_lock(&gaps->mutex);
    gaps->pending_count--;
    bp_gap_state state = BP_GAP_WRITTEN;
    if (is_written) {
        gaps->written_count++;
    } else {
        unsigned tries = atomic_fetch_add_explicit(&gap->try_count, 1, memory_order_relaxed) + 1;
        state = tries >= BUGPACK_GAP_TRIES ? BP_GAP_GIVEN_UP : BP_GAP_OPEN;
        hold(gap, BP_GAP_HELD_BY_NOTHING);
        atomic_fetch_sub_explicit(&gaps->place_count, 1, memory_order_relaxed);
        atomic_fetch_sub_explicit(&gap->channel->place_count, 1, memory_order_relaxed);
    }
    atomic_store_explicit(&gap->state, (unsigned)state, memory_order_relaxed);
    (void)pthread_mutex_unlock(&gaps->mutex);
}
