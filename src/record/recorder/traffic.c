#include "recorder/traffic.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include <bugpack/error.h>
#include <bugpack/traffic.h>

#include "base/clock.h"
#include "base/entry_guard.h"
#include "base/hash.h"
#include "base/lock.h"
#include "base/status.h"

#define CACHE_LINE 64

static const size_t message_max_bytes = (size_t)16 << 20;

/* A channel's filter is the host's function, called on the recording thread. The guard lets a close
 * wait until no thread is inside it, and none enters later, so that the host may free what the
 * filter uses. */
typedef struct channel_filter {
    /* On its own cache line, which two channels do not share. */
    _Alignas(CACHE_LINE) bp_entry_guard guard;
    bugpack_filter_callback *run;
    void *context;
} channel_filter;

/* Everything that a message changes is on cache lines of its own. Takes no lock but the rings'. The
 * ring of messages counts them and their bytes, with a tally for each direction. */
struct bp_traffic {
    bp_ring *ring, *pins;
    size_t kept_max;        /* bytes of one message: by limit, snap_bytes and ring */
    uint16_t kept_cut;      /* 1 << the bp_traffic_cut of a longer message */
    size_t pin_kept_max;    /* the same in `pins` */
    channel_filter *filter; /* NULL: none */
    bp_traffic_identity identity;
    /* kept_max bytes for a filter to work in; NULL without a filter, and while it is in use. */
    _Alignas(CACHE_LINE) _Atomic(unsigned char *) filter_copy;
    /* How much may still be pinned: bytes of messages in the upper half, bytes of `pins` in the
     * lower. 0 once the opening is over. */
    _Alignas(CACHE_LINE) _Atomic uint64_t pin_left;
};

void bp_traffic_identity_init(bp_traffic_identity *identity, const char *name, uint32_t number,
                              const bugpack_channel_options *options) {
    /* Dynamic ports (RFC 6335), so that no dissector is chosen by chance. */
    static const unsigned client_port = 49152, server_port = 61440;
    *identity = (bp_traffic_identity){.host_is_server = options->host_is_server,
                                      .host_port = options->host_port,
                                      .peer_port = options->peer_port,
                                      .snap_bytes = (uint32_t)options->snap_bytes,
                                      .payload = (uint32_t)options->payload,
                                      .number = number,
                                      .has_pins = options->pin_bytes > 0};
    memcpy(identity->name, name, strnlen(name, sizeof identity->name - 1));
    uint16_t client = (uint16_t)(client_port + number % 4096);
    uint16_t server = (uint16_t)(server_port + number % 4096);
    if (identity->host_port == 0) {
        identity->host_port = identity->host_is_server ? server : client;
    }
    if (identity->peer_port == 0) {
        identity->peer_port = identity->host_is_server ? client : server;
    }
    identity->check = XXH3_64bits(identity, offsetof(bp_traffic_identity, check));
}

bool bp_traffic_identity_is_whole(const bp_traffic_identity *identity, uint32_t number) {
    return identity->check == XXH3_64bits(identity, offsetof(bp_traffic_identity, check)) &&
           identity->number == number &&
           memchr(identity->name, '\0', sizeof identity->name) != NULL;
}

size_t bp_traffic_pins_ring_bytes(uint64_t pin_bytes) {
    const size_t overhead_bytes = BP_RING_FRAME_BYTES + sizeof(uint64_t) +
                                  sizeof(bp_traffic_header) + BP_TRAFFIC_NAME_MAX_BYTES;
    /* A ring refuses a record over a quarter of it; the other three quarters hold small ones, with
     * an eighth for what is empty in chunks, and a sixteenth for their heads. */
    size_t one_message = 4 * (pin_bytes + overhead_bytes + 8);
    size_t many_messages = pin_bytes + 256 * overhead_bytes;
    many_messages += many_messages / 4;
    return one_message > many_messages ? one_message : many_messages;
}

static size_t kept_max_of(const bp_ring *ring, size_t prefix_bytes) {
    size_t before_bytes = prefix_bytes + sizeof(bp_traffic_header) + BP_TRAFFIC_NAME_MAX_BYTES;
    size_t fits = bp_ring_payload_max(ring) - before_bytes;
    return fits < message_max_bytes ? fits : message_max_bytes;
}

/* `owner`: the session. */
static bugpack_status set_filter(bp_traffic *traffic, const bugpack_channel_options *options,
                                 const void *owner, bugpack_error *error) {
    if (traffic->kept_max == 0 || options->filter == NULL) {
        return BUGPACK_OK;
    }
    channel_filter *filter = aligned_alloc(_Alignof(channel_filter), sizeof *filter);
    unsigned char *filter_copy = malloc(traffic->kept_max);
    if (filter == NULL || filter_copy == NULL) {
        free(filter);
        free(filter_copy);
        return bp_fail_memory(error, "open a channel");
    }
    bp_entry_guard_init(&filter->guard, owner);
    filter->run = options->filter;
    filter->context = options->filter_context;
    traffic->filter = filter;
    atomic_store(&traffic->filter_copy, filter_copy);
    return BUGPACK_OK;
}

bugpack_status bp_traffic_new(const bp_traffic_identity *identity,
                              const bugpack_channel_options *options, const void *owner,
                              bp_ring *ring, bp_ring *pins, bp_traffic **ret_traffic,
                              bugpack_error *error) {
    bp_traffic *traffic = aligned_alloc(CACHE_LINE, sizeof *traffic);
    if (traffic == NULL) {
        return bp_fail_memory(error, "open a channel");
    }
    memset(traffic, 0, sizeof *traffic);
    traffic->identity = *identity;
    traffic->ring = ring;
    traffic->pins = pins;
    traffic->kept_max = kept_max_of(ring, 0);
    traffic->kept_cut = 1u << BP_TRAFFIC_CUT_LIMIT;
    if (options->payload == BUGPACK_PAYLOAD_NONE) {
        traffic->kept_max = 0;
        traffic->kept_cut = 1u << BP_TRAFFIC_CUT_FLAG;
    } else if (options->snap_bytes > 0 && options->snap_bytes < traffic->kept_max) {
        traffic->kept_max = options->snap_bytes;
        traffic->kept_cut = 1u << BP_TRAFFIC_CUT_SNAP;
    }
    bugpack_status status = set_filter(traffic, options, owner, error);
    if (status != BUGPACK_OK) {
        traffic->ring = traffic->pins = NULL; /* they stay the caller's */
        bp_traffic_free(traffic);
        return status;
    }
    if (pins != NULL) {
        uint64_t room = bp_ring_room(pins);
        traffic->pin_kept_max = kept_max_of(pins, sizeof(uint64_t));
        atomic_init(&traffic->pin_left,
                    options->pin_bytes > 0 ? options->pin_bytes << 32 | room : 0);
    }
    *ret_traffic = traffic;
    return BUGPACK_OK;
}

void bp_traffic_end_filter(bp_traffic *traffic) {
    if (traffic->filter != NULL) {
        (void)bp_entry_guard_shut(&traffic->filter->guard);
    }
}

size_t bp_traffic_seal(bp_traffic *traffic) {
    bp_traffic_end_filter(traffic); /* what it was called for is still recorded */
    size_t taken_bytes = bp_ring_seal(traffic->ring);
    if (traffic->pins != NULL) {
        taken_bytes += bp_ring_seal(traffic->pins);
    }
    free(atomic_exchange(&traffic->filter_copy, NULL));
    return taken_bytes;
}

void bp_traffic_close(bp_traffic *traffic) {
    bp_ring_close(traffic->ring);
    if (traffic->pins != NULL) {
        bp_ring_close(traffic->pins);
    }
    free(atomic_exchange(&traffic->filter_copy, NULL));
}

void bp_traffic_free(bp_traffic *traffic) {
    if (traffic != NULL) {
        bp_ring_free(traffic->ring);
        bp_ring_free(traffic->pins);
        if (traffic->filter != NULL) {
            bp_entry_guard_release(&traffic->filter->guard);
            free(traffic->filter);
        }
        free(atomic_load(&traffic->filter_copy));
        free(traffic);
    }
}

void bp_traffic_take_rings(bp_traffic *traffic, bp_ring **ret_ring, bp_ring **ret_pins) {
    if (ret_ring != NULL) {
        *ret_ring = traffic->ring;
        traffic->ring = NULL;
    }
    *ret_pins = traffic->pins;
    traffic->pins = NULL;
}

const bp_traffic_identity *bp_traffic_identity_of(const bp_traffic *traffic) {
    return &traffic->identity;
}

size_t bp_traffic_plain_max(const bp_traffic *traffic) {
    return traffic->filter == NULL ? traffic->kept_max : 0;
}

bp_ring *bp_traffic_ring(const bp_traffic *traffic) {
    return traffic->ring;
}

bp_ring *bp_traffic_pins(const bp_traffic *traffic) {
    return traffic->pins;
}

/*
 * Reserves space for one pinned record; `ret_pinned`: how many of the message's bytes it gets.
 * False once the opening is over: by bytes, or because the ring of pins would evict a record.
 */
static bool claim_pin(bp_traffic *traffic, size_t name_bytes, size_t kept, size_t *ret_pinned) {
    uint64_t left = atomic_load_explicit(&traffic->pin_left, memory_order_relaxed);
    while (left != 0) {
        size_t pinned = left >> 32 < kept ? (size_t)(left >> 32) : kept;
        pinned = pinned < traffic->pin_kept_max ? pinned : traffic->pin_kept_max;
        uint64_t payload = sizeof(uint64_t) + sizeof(bp_traffic_header) + name_bytes + pinned;
        uint64_t needed = BP_RING_FRAME_BYTES + ((payload + 7) & ~(uint64_t)7);
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

static void record(bp_traffic *traffic, const bp_traffic_header *header, const char *name,
                   const void *bytes, size_t kept) {
    uint64_t stamp_ns = 0;
    /* iovec has no const form; the ring only reads. The first part is for pinned records only. */
    struct iovec parts[] = {{.iov_base = &stamp_ns, .iov_len = sizeof stamp_ns},
                            {.iov_base = (void *)(uintptr_t)header, .iov_len = sizeof *header},
                            {.iov_base = (void *)(uintptr_t)name, .iov_len = header->name_bytes},
                            {.iov_base = (void *)(uintptr_t)bytes, .iov_len = kept}};
    bp_ring_entry entry = {.monotonic_ns = bp_clock_monotonic_ns(),
                           .tag = BP_TRAFFIC_TAG_MESSAGE,
                           .parts = parts + 1,
                           .part_count = 3,
                           .tally = 1u + header->direction,
                           .amount = header->original_bytes};
    stamp_ns = bp_ring_append_entry(traffic->ring, &entry);
    if (stamp_ns == 0) {
        return; /* closed */
    }
    if (claim_pin(traffic, header->name_bytes, kept, &parts[3].iov_len)) {
        bp_traffic_header pinned = *header;
        pinned.cuts |= parts[3].iov_len < kept ? 1u << BP_TRAFFIC_CUT_PIN : 0;
        parts[1].iov_base = &pinned;
        entry = (bp_ring_entry){
            .monotonic_ns = stamp_ns, .tag = BP_TRAFFIC_TAG_PIN, .parts = parts, .part_count = 4};
        (void)bp_ring_append_entry(traffic->pins, &entry);
    }
}

/* `copy` has `kept` bytes; NULL where there is no memory: then none of the message are kept. Nor
 * are they once the channel is closed, whose ring then refuses the message. */
static void record_filtered(bp_traffic *traffic, bp_traffic_header *header, const char *name,
                            void *copy, const void *bytes, size_t kept) {
    channel_filter *filter = traffic->filter;
    bp_guard_entry entry;
    size_t left = 0;
    if (copy != NULL && bp_entry_guard_enter(&filter->guard, &entry)) {
        memcpy(copy, bytes, kept);
        bp_lock_check_none_held();
        left = filter->run((bugpack_direction)header->direction, header->type, copy, kept,
                           filter->context);
        bp_entry_guard_leave(&entry);
    }
    header->cuts |= left < kept ? 1u << BP_TRAFFIC_CUT_FILTER : 0;
    record(traffic, header, name, copy, left < kept ? left : kept);
}

/*
 * The filter is the host's code, so it is called without a lock. A large message is copied to the
 * channel's buffer; a second thread that comes meanwhile allocates one of its own.
 */
static void filter(bp_traffic *traffic, bp_traffic_header *header, const char *name,
                   const void *bytes, size_t kept) {
    if (kept <= BUGPACK_TRAFFIC_FILTER_STACK_BYTES) {
        unsigned char copy[BUGPACK_TRAFFIC_FILTER_STACK_BYTES];
        record_filtered(traffic, header, name, copy, bytes, kept);
        return;
    }
    unsigned char *shared = atomic_exchange(&traffic->filter_copy, NULL);
    unsigned char *copy = shared != NULL ? shared : malloc(kept);
    record_filtered(traffic, header, name, copy, bytes, kept);
    if (shared != NULL) {
        atomic_store(&traffic->filter_copy, shared); /* freed with the channel, if it is closed */
    } else {
        free(copy);
    }
}

void bp_traffic_append(bp_traffic *traffic, bugpack_direction direction, uint32_t type,
                       const char *type_name, const void *bytes, size_t byte_count) {
    size_t name_bytes = type_name == NULL ? 0 : strnlen(type_name, BP_TRAFFIC_NAME_MAX_BYTES);
    bp_traffic_header header = {.original_bytes = byte_count,
                                .type = type,
                                .direction = direction == BUGPACK_SENT ? 0 : 1,
                                .name_bytes = (uint8_t)name_bytes};
    size_t kept = byte_count;
    if (bytes == NULL) {
        kept = 0;
        header.cuts = 1u << BP_TRAFFIC_CUT_ABSENT;
    } else if (byte_count > traffic->kept_max) {
        kept = traffic->kept_max;
        header.cuts = traffic->kept_cut;
    }
    if (traffic->filter == NULL || kept == 0) {
        record(traffic, &header, type_name, bytes, kept);
    } else {
        filter(traffic, &header, type_name, bytes, kept);
    }
}

void bp_traffic_count(const bp_traffic *traffic, bp_traffic_totals *ret_totals) {
    for (unsigned i = 0; i < 2; i++) {
        const bp_ring_tally tally = bp_ring_read_tally(traffic->ring, 1 + i);
        ret_totals->message_count[i] = tally.record_count;
        ret_totals->byte_count[i] = tally.amount;
        ret_totals->last_ns[i] = tally.last_ns;
    }
}

static bugpack_status copy_part(bp_ring *ring, uint64_t until_ns, bp_temp_file *records,
                                bp_traffic_part *ret_part, bp_ring_view *ret_view,
                                bugpack_error *error) {
    ret_part->from = records->size;
    bugpack_status status =
        bp_ring_copy(ring, until_ns, bp_temp_file_sink, records, ret_view, error);
    ret_part->to = records->size;
    return status;
}

bugpack_status bp_traffic_take_snapshot(bp_traffic *traffic, uint64_t until_ns,
                                        uint64_t wall_offset_ns, bp_temp_file *records,
                                        bp_traffic_snapshot *ret_snapshot, bugpack_error *error) {
    bp_traffic_snapshot snapshot = {.identity = traffic->identity,
                                    .wall_offset_ns = wall_offset_ns};
    bugpack_status status = copy_part(traffic->ring, until_ns, records, &snapshot.messages,
                                      &snapshot.messages_view, error);
    if (status == BUGPACK_OK && traffic->pins != NULL) {
        status =
            copy_part(traffic->pins, until_ns, records, &snapshot.pins, &snapshot.pins_view, error);
    }
    if (status == BUGPACK_OK) {
        *ret_snapshot = snapshot;
    }
    return status;
}
