#include "recorder/channels.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

bugpack_status bp_channels_init(bp_channels *channels, uint64_t budget_bytes, bp_rings *rings,
                                bugpack_error *error) {
    *channels = (bp_channels){.rings = rings, .budget_bytes = budget_bytes};
    return bp_lock_init(&channels->lock, BP_LOCK_CHANNELS)
               ? BUGPACK_OK
               : bp_fail_memory(error, "make a recorder");
}

size_t bp_channels_list(const bp_channels *channels, bp_traffic *const **ret_list) {
    *ret_list = channels->list;
    return atomic_load_explicit(&channels->count, memory_order_acquire);
}

void *bp_channels_user(const bp_channels *channels, size_t at) {
    return channels->users[at];
}

/*
 * How much of the budget the channels of this sum of weights have together. The first
 * BUGPACK_TRAFFIC_WEIGHT_TOTAL share three quarters of it in proportion. The last quarter is never
 * used up, however many follow.
 */
static uint64_t bytes_of_weights(uint64_t budget_bytes, uint64_t weight_sum) {
    uint64_t reserve_bytes = budget_bytes / 4;
    if (weight_sum <= BUGPACK_TRAFFIC_WEIGHT_TOTAL) {
        return (budget_bytes - reserve_bytes) / BUGPACK_TRAFFIC_WEIGHT_TOTAL * weight_sum;
    }
    uint64_t left_bytes =
        (uint64_t)((double)reserve_bytes * BUGPACK_TRAFFIC_WEIGHT_TOTAL / (double)weight_sum);
    return budget_bytes - left_bytes;
}

/* The share of the next channel in whole pages, at least one as long as the budget has one. */
static size_t next_ring_bytes(const bp_channels *channels, uint32_t weight) {
    const uint64_t page_bytes = 4096;
    uint64_t before = bytes_of_weights(channels->budget_bytes, channels->weight_sum);
    uint64_t after = bytes_of_weights(channels->budget_bytes, channels->weight_sum + weight);
    uint64_t share = after > before + page_bytes ? after - before : page_bytes;
    uint64_t left = channels->budget_bytes - channels->used_bytes;
    return (size_t)((share < left ? share : left) / page_bytes * page_bytes);
}

/* NULL: none. */
static const bp_traffic *find(const bp_channels *channels, const char *name) {
    size_t count = atomic_load_explicit(&channels->count, memory_order_acquire);
    for (size_t i = 0; i < count; i++) {
        if (strcmp(bp_traffic_identity_of(channels->list[i])->name, name) == 0) {
            return channels->list[i];
        }
    }
    return NULL;
}

size_t bp_channels_plain_max(const bp_channels *channels, const char *name) {
    const bp_traffic *channel = find(channels, name);
    return channels->budget_bytes == 0 ? 0
           : channel == NULL           ? SIZE_MAX
                                       : bp_traffic_plain_max(channel);
}

/* `ret_ring_bytes`: of the ring of messages. The lock is held, here and below. */
static bugpack_status check_channel(const bp_channels *channels, const char *name, uint32_t weight,
                                    size_t *ret_ring_bytes, bugpack_error *error) {
    if (channels->budget_bytes == 0) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "this session records no traffic");
    }
    if (weight == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "channel \"%s\" has the weight 0", name);
    }
    if (find(channels, name) != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "channel \"%s\": the name is taken", name);
    }
    if (channels->count == BUGPACK_CHANNEL_MAX) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "channel \"%s\": there are too many", name);
    }
    *ret_ring_bytes = next_ring_bytes(channels, weight);
    return *ret_ring_bytes > 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_LIMIT,
                         "channel \"%s\": too little is left of the traffic budget", name);
}

/* Both rings and the channel over them. */
static bugpack_status make_channel(bp_channels *channels, const char *name, size_t ring_bytes,
                                   const bugpack_channel_options *options, bp_traffic **ret_channel,
                                   bugpack_error *error) {
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    uint32_t number = (uint32_t)channels->count;
    bp_traffic_identity_init(&identity, name, number, options);
    bugpack_status status =
        bp_rings_make(channels->rings, BP_RING_KIND_TRAFFIC, number, ring_bytes, &ring, error);
    if (status == BUGPACK_OK && options->pin_bytes > 0) {
        status = bp_rings_make(channels->rings, BP_RING_KIND_PINS, number,
                               bp_traffic_pins_ring_bytes(options->pin_bytes), &pins, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_traffic_new(&identity, options, ring, pins, ret_channel, error);
    }
    if (status != BUGPACK_OK) {
        bp_rings_drop(channels->rings, ring);
        bp_rings_drop(channels->rings, pins);
        return status;
    }
    char file[BP_RING_NAME_BYTES];
    (void)snprintf(file, sizeof file, BP_CHANNEL_FILE_FORMAT, (unsigned)number);
    bp_rings_write_file(channels->rings, file, &identity, sizeof identity);
    return BUGPACK_OK;
}

bugpack_status bp_channels_open(bp_channels *channels, const char *name,
                                const bugpack_channel_options *options, void *user,
                                bp_traffic **ret_channel, bugpack_error *error) {
    size_t ring_bytes = 0;
    bp_traffic *channel = NULL;
    bp_lock_acquire(&channels->lock);
    bugpack_status status = check_channel(channels, name, options->weight, &ring_bytes, error);
    if (status == BUGPACK_OK) {
        status = make_channel(channels, name, ring_bytes, options, &channel, error);
    }
    if (status == BUGPACK_OK) {
        size_t count = atomic_load_explicit(&channels->count, memory_order_relaxed);
        channels->list[count] = channel;
        channels->users[count] = user;
        channels->weight_sum += options->weight;
        channels->used_bytes += ring_bytes;
        atomic_store_explicit(&channels->count, count + 1, memory_order_release);
        *ret_channel = channel;
    }
    bp_lock_release(&channels->lock);
    return status;
}

void bp_channels_note_loss(const bp_channels *channels, const bp_traffic *channel, char *reason,
                           size_t reason_bytes) {
    bp_rings_note_loss(channels->rings, bp_traffic_ring(channel), reason, reason_bytes);
    bp_rings_note_loss(channels->rings, bp_traffic_pins(channel), reason, reason_bytes);
}

void bp_channels_end(bp_channels *channels, const bp_traffic *channel) {
    atomic_store_explicit(&channels->is_ended[bp_traffic_identity_of(channel)->number], true,
                          memory_order_relaxed);
}

const char *bp_channels_open_name(const bp_channels *channels, size_t at) {
    if (at >= atomic_load_explicit(&channels->count, memory_order_acquire)) {
        return NULL;
    }
    bool is_ended = atomic_load_explicit(&channels->is_ended[at], memory_order_relaxed);
    return is_ended ? "" : bp_traffic_identity_of(channels->list[at])->name;
}

void bp_channels_close(bp_channels *channels) {
    for (size_t i = 0; i < channels->count; i++) {
        bp_traffic_close(channels->list[i]);
    }
}

void bp_channels_release(bp_channels *channels) {
    for (size_t i = 0; i < channels->count; i++) {
        bp_traffic_free(channels->list[i]);
    }
    bp_lock_destroy(&channels->lock);
}
