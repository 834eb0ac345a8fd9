#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/clock.h"
#include "recorder/traffic_private.h"
#include "recorder/traffic_record.h"

/*
 * Sets the room for one pinned record aside and says how many of the message's bytes go there.
 * False when the opening is over, be it by bytes of messages or because the ring would have to
 * evict something.
 */
static bool claim_pin(bp_traffic *traffic, size_t name_bytes, size_t kept, size_t *ret_pinned) {
    uint64_t left = atomic_load_explicit(&traffic->pin_left, memory_order_relaxed);
    while (left != 0) {
        size_t pinned = left >> 32 < kept ? (size_t)(left >> 32) : kept;
        pinned = pinned < traffic->pin_kept_max ? pinned : traffic->pin_kept_max;
        uint64_t payload = sizeof(uint64_t) + sizeof(bp_traffic_header) + name_bytes + pinned;
        uint64_t needed = BP_TRAFFIC_RING_FRAME_BYTES + ((payload + 7) & ~(uint64_t)7);
        bool fits = needed <= (left & UINT32_MAX);
        uint64_t rest = fits ? left - ((uint64_t)pinned << 32) - needed : 0;
        rest = rest >> 32 == 0 ? 0 : rest;
        if (atomic_compare_exchange_weak_explicit(&traffic->pin_left, &left, rest,
                                                  memory_order_relaxed, memory_order_relaxed)) {
            *ret_pinned = pinned;
            return fits;
        }
    }
    return false;
}

static void keep(bp_traffic *traffic, const bp_traffic_header *head, const char *name,
                 const void *bytes, size_t kept) {
    uint64_t sequence = 0;
    /* iovec has no const form; the ring only reads. The first part is a pinned record's alone. */
    struct iovec parts[] = {{.iov_base = &sequence, .iov_len = sizeof sequence},
                            {.iov_base = (void *)(uintptr_t)head, .iov_len = sizeof *head},
                            {.iov_base = (void *)(uintptr_t)name, .iov_len = head->name_bytes},
                            {.iov_base = (void *)(uintptr_t)bytes, .iov_len = kept}};
    bp_ring_entry entry = {.monotonic_ns = bp_clock_monotonic_ns(),
                           .tag = BP_TRAFFIC_TAG_MESSAGE,
                           .parts = parts + 1,
                           .part_count = 3,
                           .tally = &traffic->tallies[head->direction],
                           .amount = head->original_bytes};
    sequence = bp_ring_append_entry(traffic->ring, &entry);
    if (sequence == 0) {
        return; /* closed */
    }
    if (kept < head->original_bytes) {
        atomic_fetch_add_explicit(&traffic->cut_count, 1, memory_order_relaxed);
    }
    if (claim_pin(traffic, head->name_bytes, kept, &parts[3].iov_len)) {
        bp_traffic_header pinned = *head;
        pinned.cuts |= parts[3].iov_len < kept ? 1u << BP_TRAFFIC_CUT_PIN : 0;
        parts[1].iov_base = &pinned;
        entry = (bp_ring_entry){.monotonic_ns = entry.monotonic_ns,
                                .tag = BP_TRAFFIC_TAG_PIN,
                                .parts = parts,
                                .part_count = 4};
        (void)bp_ring_append_entry(traffic->pins, &entry);
    }
}

static void filter(bp_traffic *traffic, bp_traffic_header *head, const char *name, void *copy,
                   const void *bytes, size_t kept) {
    memcpy(copy, bytes, kept);
    size_t left = traffic->filter((bugpack_direction)head->direction, head->type, copy, kept,
                                  traffic->filter_context);
    head->cuts |= left < kept ? 1u << BP_TRAFFIC_CUT_FILTER : 0;
    keep(traffic, head, name, copy, left < kept ? left : kept);
}

static void keep_filtered(bp_traffic *traffic, bp_traffic_header *head, const char *name,
                          const void *bytes, size_t kept) {
    if (kept <= BUGPACK_TRAFFIC_FILTER_ALONE_BYTES) {
        unsigned char copy[BUGPACK_TRAFFIC_FILTER_ALONE_BYTES];
        filter(traffic, head, name, copy, bytes, kept);
    } else {
        (void)pthread_mutex_lock(&traffic->filter_mutex);
        if (traffic->filter_copy != NULL) { /* else it is retired */
            filter(traffic, head, name, traffic->filter_copy, bytes, kept);
        }
        (void)pthread_mutex_unlock(&traffic->filter_mutex);
    }
}

void bp_traffic_append(bp_traffic *traffic, bugpack_direction direction, uint32_t type,
                       const char *type_name, const void *bytes, size_t byte_count) {
    size_t name_bytes = type_name == NULL ? 0 : strnlen(type_name, BP_TRAFFIC_NAME_MAX_BYTES);
    bp_traffic_header head = {.original_bytes = byte_count,
                              .type = type,
                              .direction = direction == BUGPACK_SENT ? 0 : 1,
                              .name_bytes = (uint8_t)name_bytes};
    size_t kept = byte_count;
    if (bytes == NULL) {
        kept = 0;
        head.cuts = 1u << BP_TRAFFIC_CUT_ABSENT;
    } else if (byte_count > traffic->kept_max) {
        kept = traffic->kept_max;
        head.cuts = traffic->kept_cut;
    }
    if (traffic->filter == NULL || kept == 0) {
        keep(traffic, &head, type_name, bytes, kept);
    } else {
        keep_filtered(traffic, &head, type_name, bytes, kept);
    }
}

void bp_traffic_close(bp_traffic *traffic) {
    bp_ring_close(traffic->ring);
    if (traffic->pins != NULL) {
        bp_ring_close(traffic->pins);
    }
}

void bp_traffic_retire(bp_traffic *traffic) {
    bp_ring_retire(traffic->ring);
    if (traffic->pins != NULL) {
        bp_ring_retire(traffic->pins);
    }
    (void)pthread_mutex_lock(&traffic->filter_mutex);
    unsigned char *filter_copy = traffic->filter_copy;
    traffic->filter_copy = NULL;
    (void)pthread_mutex_unlock(&traffic->filter_mutex);
    free(filter_copy);
}

void bp_traffic_count(const bp_traffic *traffic, bp_traffic_totals *ret_totals) {
    bp_traffic_totals totals;
    for (unsigned i = 0; i < 2; i++) {
        const bp_ring_tally *tally = &traffic->tallies[i];
        totals.message_count[i] = atomic_load_explicit(&tally->record_count, memory_order_relaxed);
        totals.byte_count[i] = atomic_load_explicit(&tally->amount, memory_order_relaxed);
        totals.last_ns[i] = atomic_load_explicit(&tally->last_ns, memory_order_relaxed);
    }
    totals.cut_count = atomic_load_explicit(&traffic->cut_count, memory_order_relaxed);
    *ret_totals = totals;
}
