#include "recorder/channels.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"

enum { page_bytes = 4096, handle_alignment = 64 };

/* A share is never smaller than this part of what the first channels get, or than 16 KiB. */
static const uint64_t least_part = 64, least_bytes = 16 * 1024;

void bp_channels_init(bp_channels *channels, uint64_t budget_bytes, bp_rings *rings,
                      void *session) {
    *channels = (bp_channels){.rings = rings,
                              .session = session,
                              .budget_bytes = budget_bytes,
                              .forgotten_max = SIZE_MAX};
    bp_lock_init(&channels->lock, BP_LOCK_CHANNELS);
    bp_lock_init(&channels->list_lock, BP_LOCK_CHANNEL_LIST);
}

/*
 * The part of the budget that channels of this sum of weights have together. The first
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

/*
 * The share of the next channel, in whole pages. Together the shares of open channels stay within
 * the budget, except for the least share: a smaller ring would hold too little to be of use.
 */
static size_t next_ring_bytes(const bp_channels *channels, uint64_t weight) {
    uint64_t weight_max =
        weight < BUGPACK_TRAFFIC_WEIGHT_TOTAL ? weight : BUGPACK_TRAFFIC_WEIGHT_TOTAL;
    uint64_t first = bytes_of_weights(channels->budget_bytes, weight_max);
    uint64_t least = first / least_part > least_bytes ? first / least_part : least_bytes;
    uint64_t before = bytes_of_weights(channels->budget_bytes, channels->weight_sum);
    uint64_t share =
        bytes_of_weights(channels->budget_bytes, channels->weight_sum + weight) - before;
    least = least < first ? least : first;
    share = share > least ? share : least;
    return (size_t)(share > page_bytes ? share / page_bytes * page_bytes : page_bytes);
}

/* The newest of this name; NULL: none. An older one is closed. One of the two locks is held. */
static const bp_channel_item *find(const bp_channels *channels, const char *name) {
    for (size_t i = channels->count; i-- > 0;) {
        if (strcmp(bp_traffic_identity_of(channels->items[i]->traffic)->name, name) == 0) {
            return channels->items[i];
        }
    }
    return NULL;
}

size_t bp_channels_plain_max(bp_channels *channels, const char *name, bool *ret_exact) {
    *ret_exact = false;
    if (channels->budget_bytes == 0) {
        return 0;
    }
    bp_lock_acquire(&channels->list_lock);
    const bp_channel_item *item = find(channels, name);
    size_t max = channels->forgotten_max;
    if (item != NULL) {
        max = bp_traffic_plain_max(item->traffic);
        *ret_exact = bp_traffic_identity_of(item->traffic)->payload == BUGPACK_PAYLOAD_EXACT;
    }
    bp_lock_release(&channels->list_lock);
    return max;
}

bugpack_status bp_channels_hold(bp_channels *channels, bp_channel_list *ret_list,
                                bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    *ret_list = (bp_channel_list){.count = 0};
    bp_lock_acquire(&channels->list_lock);
    if (channels->count > 0) {
        ret_list->items = malloc(channels->count * sizeof ret_list->items[0]);
        status = ret_list->items == NULL ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
    }
    for (size_t i = 0; status == BUGPACK_OK && i < channels->count; i++) {
        channels->items[i]->hold_count++;
        ret_list->items[ret_list->count++] = channels->items[i];
    }
    bp_lock_release(&channels->list_lock);
    return status == BUGPACK_OK ? status : bp_fail_memory(error, "list the channels");
}

void bp_channels_unhold(bp_channels *channels, bp_channel_list *list) {
    bp_lock_acquire(&channels->list_lock);
    for (size_t i = 0; i < list->count; i++) {
        list->items[i]->hold_count--;
    }
    bp_lock_release(&channels->list_lock);
    free(list->items);
}

/* True if nobody can be at this channel any more; both locks are held. Who enters from now on finds
 * it closed. */
static bool is_idle(const bp_channel_item *item) {
    return item->is_closed && item->hold_count == 0 &&
           atomic_load_explicit(&item->handle->state, memory_order_acquire) == 1;
}

static void drop_rings(bp_channels *channels, bp_ring *ring, bp_ring *pins) {
    bp_rings_drop(channels->rings, ring);
    bp_rings_drop(channels->rings, pins);
}

/* Puts a handle behind those that may be used again. The lock is held. */
static void retire_handle(bp_channels *channels, bugpack_channel *handle) {
    handle->next_closed = NULL;
    if (channels->last_closed != NULL) {
        channels->last_closed->next_closed = handle;
    } else {
        channels->first_closed = handle;
    }
    channels->last_closed = handle;
    channels->handle_count++;
}

/* A closed handle; NULL without memory. The lock is held. */
static bugpack_channel *take_handle(bp_channels *channels) {
    bugpack_channel *handle = channels->first_closed;
    if (channels->handle_count > BUGPACK_CHANNEL_LATE_CALLS) {
        channels->first_closed = handle->next_closed;
        channels->handle_count--;
        return handle;
    }
    handle = aligned_alloc(handle_alignment, handle_alignment);
    if (handle != NULL) {
        *handle = (bugpack_channel){.session = channels->session};
        atomic_init(&handle->state, 1);
    }
    return handle;
}

/* Writes, or removes, the file by which recovery knows of a channel whose ring could not be in a
 * file of the session's directory. */
static void note_memory(bp_channels *channels, const bp_traffic *channel, bool is_there) {
    char file[BP_RING_NAME_BYTES];
    const bp_traffic_identity *identity = bp_traffic_identity_of(channel);
    if (channels->rings->dir != NULL && !bp_ring_is_in_file(bp_traffic_ring(channel))) {
        (void)snprintf(file, sizeof file, BP_CHANNEL_FILE_FORMAT, (unsigned)identity->number);
        (void)bp_rings_write_file(channels->rings, file, is_there ? identity : NULL,
                                  sizeof *identity);
    }
}

/* Removes a closed channel from the list, if it is idle. The lock is held. */
static bool forget(bp_channels *channels, size_t at) {
    bp_ring *ring, *pins;
    bp_lock_acquire(&channels->list_lock);
    bp_channel_item *item = channels->items[at];
    bool is_gone = is_idle(item);
    if (is_gone) {
        size_t plain_max = bp_traffic_plain_max(item->traffic);
        channels->forgotten_max =
            plain_max < channels->forgotten_max ? plain_max : channels->forgotten_max;
        channels->count--;
        memmove(&channels->items[at], &channels->items[at + 1],
                (channels->count - at) * sizeof channels->items[0]);
    }
    bp_lock_release(&channels->list_lock);
    if (is_gone) {
        note_memory(channels, item->traffic, false);
        channels->closed_bytes -= item->taken_bytes;
        channels->closed_count--;
        bp_traffic_take_rings(item->traffic, &ring, &pins);
        drop_rings(channels, ring, pins);
        bp_traffic_free(item->traffic);
        retire_handle(channels, item->handle);
        free(item);
    }
    return is_gone;
}

/* Forgets closed channels, the oldest first, until there is room for `needed_bytes` more in open
 * ones. An eighth of the budget stays for the closed in any case. The lock is held. */
static void make_room(bp_channels *channels, uint64_t needed_bytes) {
    uint64_t open_bytes = channels->open_bytes + needed_bytes;
    uint64_t left_bytes =
        open_bytes < channels->budget_bytes ? channels->budget_bytes - open_bytes : 0;
    uint64_t closed_max =
        left_bytes > channels->budget_bytes / 8 ? left_bytes : channels->budget_bytes / 8;
    for (size_t i = 0; i < channels->count;) {
        if (channels->closed_bytes <= closed_max &&
            channels->closed_count <= BP_CHANNEL_CLOSED_MAX) {
            break;
        }
        bool is_closed = channels->items[i]->is_closed; /* changed under the lock alone */
        if (!is_closed || !forget(channels, i)) {
            i++;
        }
    }
}

/* Both rings and the channel over them. The lock is held, here and below. */
static bugpack_status make_channel(bp_channels *channels, const char *name, size_t ring_bytes,
                                   const bugpack_channel_options *options, bp_traffic **ret_channel,
                                   bugpack_error *error) {
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_ring_label label = {.kind = BP_RING_KIND_TRAFFIC,
                           .number = channels->next_number,
                           .about = &identity,
                           .about_bytes = sizeof identity};
    bp_traffic_identity_init(&identity, name, channels->next_number, options);
    bugpack_status status = bp_rings_make(channels->rings, &label, ring_bytes, &ring, error);
    if (status == BUGPACK_OK && options->pin_bytes > 0) {
        label.kind = BP_RING_KIND_PINS;
        status = bp_rings_make(channels->rings, &label,
                               bp_traffic_pins_ring_bytes(options->pin_bytes), &pins, error);
    }
    if (status == BUGPACK_OK) {
        status =
            bp_traffic_new(&identity, options, channels->session, ring, pins, ret_channel, error);
    }
    if (status != BUGPACK_OK) {
        drop_rings(channels, ring, pins);
        return status;
    }
    channels->next_number++;
    note_memory(channels, *ret_channel, true);
    return BUGPACK_OK;
}

static bugpack_status open_locked(bp_channels *channels, const char *name,
                                  const bugpack_channel_options *options,
                                  bugpack_channel **ret_channel, bugpack_error *error) {
    bp_channel_item *item = NULL;
    bugpack_channel *handle = NULL;
    bugpack_status status = BUGPACK_OK;
    if (channels->budget_bytes == 0) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "this session records no traffic");
    }
    if (options->weight == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "channel \"%s\" has the weight 0", name);
    }
    const bp_channel_item *namesake = find(channels, name);
    if (namesake != NULL && !namesake->is_closed) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "channel \"%s\": the name is taken", name);
    }
    size_t ring_bytes = next_ring_bytes(channels, options->weight);
    make_room(channels, ring_bytes);
    item = calloc(1, sizeof *item);
    handle = take_handle(channels);
    bp_lock_acquire(&channels->list_lock);
    bool has_place = bp_array_reserve(&channels->items, channels->count, &channels->capacity);
    bp_lock_release(&channels->list_lock);
    if (item == NULL || handle == NULL || !has_place) {
        status = bp_fail_memory(error, "open a channel");
        goto out;
    }
    status = make_channel(channels, name, ring_bytes, options, &item->traffic, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    item->handle = handle;
    item->weight = options->weight;
    item->taken_bytes = ring_bytes;
    channels->weight_sum += item->weight;
    channels->open_bytes += ring_bytes;
    bp_lock_acquire(&channels->list_lock);
    channels->items[channels->count++] = item;
    bp_lock_release(&channels->list_lock);
    handle->traffic = item->traffic;
    atomic_fetch_sub_explicit(&handle->state, 1, memory_order_release); /* open */
    *ret_channel = handle;
    return BUGPACK_OK;
out:
    if (handle != NULL) {
        retire_handle(channels, handle);
    }
    free(item);
    return status;
}

bugpack_status bp_channels_open(bp_channels *channels, const char *name,
                                const bugpack_channel_options *options,
                                bugpack_channel **ret_channel, bugpack_error *error) {
    bp_lock_acquire(&channels->lock);
    bugpack_status status = open_locked(channels, name, options, ret_channel, error);
    bp_lock_release(&channels->lock);
    return status;
}

void bp_channels_close(bp_channels *channels, bugpack_channel *channel) {
    if (atomic_fetch_or_explicit(&channel->state, 1, memory_order_acq_rel) % 2 != 0) {
        return;
    }
    /* It is in the list, and stays there until it is marked as closed. Its filter may take long. */
    (void)bp_traffic_seal(channel->traffic);
    bp_lock_acquire(&channels->lock);
    bp_lock_acquire(&channels->list_lock);
    size_t at = channels->count - 1;
    while (channels->items[at]->traffic != channel->traffic) {
        at--;
    }
    bp_channel_item *item = channels->items[at];
    item->is_closed = true;
    channels->weight_sum -= item->weight;
    channels->open_bytes -= item->taken_bytes;
    bp_ring *pins = NULL; /* needless where the ring still has all messages */
    if (is_idle(item) && !bp_ring_has_evicted(bp_traffic_ring(item->traffic))) {
        bp_traffic_take_rings(item->traffic, NULL, &pins);
    }
    bp_lock_release(&channels->list_lock);
    bp_rings_drop(channels->rings, pins);
    item->taken_bytes = bp_traffic_seal(item->traffic); /* without the pins */
    channels->closed_bytes += item->taken_bytes;
    channels->closed_count++;
    make_room(channels, 0);
    bp_lock_release(&channels->lock);
}

void bp_channels_note_loss(const bp_channels *channels, const bp_traffic *channel, char *reason,
                           size_t reason_bytes) {
    bp_rings_note_loss(channels->rings, bp_traffic_ring(channel), reason, reason_bytes);
    bp_rings_note_loss(channels->rings, bp_traffic_pins(channel), reason, reason_bytes);
}

void bp_channels_end(bp_channels *channels) {
    for (size_t i = 0; i < channels->count; i++) {
        bp_traffic_close(channels->items[i]->traffic);
    }
}

void bp_channels_end_filters(bp_channels *channels) {
    for (size_t i = 0; i < channels->count; i++) {
        bp_traffic_end_filter(channels->items[i]->traffic);
    }
}

void bp_channels_release(bp_channels *channels) {
    for (size_t i = 0; i < channels->count; i++) {
        bp_traffic_free(channels->items[i]->traffic);
        free(channels->items[i]->handle);
        free(channels->items[i]);
    }
    while (channels->first_closed != NULL) {
        bugpack_channel *next = channels->first_closed->next_closed;
        free(channels->first_closed);
        channels->first_closed = next;
    }
    free(channels->items);
    bp_lock_destroy(&channels->lock);
    bp_lock_destroy(&channels->list_lock);
}
