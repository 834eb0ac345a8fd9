#include <stdlib.h>

#include "base/status.h"
#include "recorder/traffic.h"
#include "recorder/traffic_record.h"

/* A pinned message: where its record begins in the spool of pins. */
typedef struct pin {
    uint64_t sequence, offset;
} pin;

/* One channel on its way into the pcap: its pinned and its other messages in the ring's order. */
typedef struct lane {
    const bp_traffic_frozen *frozen;
    bp_pcap_stream stream;
    bp_traffic_window window;
    pin *pins; /* ascending by sequence */
    size_t pin_count, next_pin;
    uint64_t message_offset;
    bp_traffic_record message; /* the next of the ring */
    bp_traffic_record current; /* what comes next of this lane */
    bool has_message, has_current, is_pinned;
    uint64_t current_wall_ns;
    uint64_t expected_sequence; /* of the next message, if none is missing */
} lane;

typedef struct printer {
    lane *lanes;
    size_t lane_count;
    bp_spool *out;
    bp_traffic_extent extent;
    lane *source; /* whose bytes are being fetched */
    unsigned char segment[BP_PCAP_SEGMENT_BYTES];
} printer;

static int compare_pins(const void *left, const void *right) {
    uint64_t a = ((const pin *)left)->sequence, b = ((const pin *)right)->sequence;
    return a < b ? -1 : a > b;
}

/* More than fit in a ring that bp_traffic_pins_ring_bytes sized; a file may claim any number. */
static const size_t pin_count_max = 128 * 1024;

/* Several threads may have pinned in another order than they recorded, so the pins are sorted. */
static bugpack_status index_pins(lane *at, bugpack_error *error) {
    size_t capacity = 0;
    uint64_t offset = 0, begin = 0;
    bp_traffic_record record;
    bp_traffic_window_move(&at->window, &at->frozen->pins);
    while (at->pin_count < pin_count_max && bp_traffic_record_next(&at->window, &offset, &record)) {
        if (at->pin_count == capacity) {
            capacity = capacity == 0 ? 64 : 2 * capacity;
            pin *grown = realloc(at->pins, capacity * sizeof *grown);
            if (grown == NULL) {
                return bp_fail_memory(error, "write the traffic");
            }
            at->pins = grown;
        }
        at->pins[at->pin_count++] = (pin){.sequence = record.sequence, .offset = begin};
        begin = offset;
    }
    if (at->pin_count > 1) {
        qsort(at->pins, at->pin_count, sizeof *at->pins, compare_pins);
    }
    return BUGPACK_OK;
}

static void read_message(lane *at) {
    bp_traffic_window_move(&at->window, &at->frozen->messages);
    at->has_message = bp_spool_is_open(&at->frozen->messages) &&
                      bp_traffic_record_next(&at->window, &at->message_offset, &at->message);
}

/* Reads the next pinned message that the ring no longer has, if that is what comes next. */
static bool read_pin(lane *at) {
    while (at->next_pin < at->pin_count) {
        const pin *next = &at->pins[at->next_pin];
        if (at->has_message && next->sequence > at->message.sequence) {
            return false;
        }
        at->next_pin++;
        if (at->has_message && next->sequence == at->message.sequence) {
            continue;
        }
        uint64_t offset = next->offset;
        bp_traffic_window_move(&at->window, &at->frozen->pins);
        if (bp_traffic_record_next(&at->window, &offset, &at->current)) {
            return true;
        }
    }
    return false;
}

/* Moves on to what comes next of this channel. Its time is never before that of the last. */
static void advance(lane *at) {
    if (at->has_current && !at->is_pinned) {
        read_message(at); /* not before the last one's bytes were fetched from the same window */
    }
    at->is_pinned = read_pin(at);
    at->has_current = at->is_pinned;
    if (!at->is_pinned && at->has_message) {
        at->current = at->message;
        at->has_current = true;
    }
    if (at->has_current) {
        uint64_t wall_ns = at->current.monotonic_ns + at->frozen->wall_offset_ns;
        at->current_wall_ns = wall_ns > at->current_wall_ns ? wall_ns : at->current_wall_ns;
    }
}

static bugpack_status open_lane(lane *at, bp_traffic_frozen *frozen, bugpack_error *error) {
    const bp_traffic_identity *identity = &frozen->identity;
    at->frozen = frozen;
    at->expected_sequence = 1;
    at->stream = (bp_pcap_stream){.is_ipv6 = identity->is_ipv6 != 0,
                                  .host_is_server = identity->host_is_server != 0,
                                  .host_port = identity->host_port,
                                  .peer_port = identity->peer_port,
                                  .number = identity->number};
    bugpack_status status = BUGPACK_OK;
    if (bp_spool_is_open(&frozen->messages)) {
        status = bp_spool_flush(&frozen->messages, error);
    }
    if (status == BUGPACK_OK && bp_spool_is_open(&frozen->pins)) {
        status = bp_spool_flush(&frozen->pins, error);
        if (status == BUGPACK_OK) {
            status = index_pins(at, error);
        }
    }
    if (status == BUGPACK_OK) {
        read_message(at);
        advance(at);
    }
    return status;
}

/* A bp_pcap_fetch: out of the window, or for more than it holds straight out of the spool. */
static const void *fetch(void *context, uint64_t offset, size_t byte_count) {
    printer *print = context;
    lane *at = print->source;
    const bp_spool *spool = at->is_pinned ? &at->frozen->pins : &at->frozen->messages;
    offset += at->current.bytes_offset;
    if (byte_count <= BP_TRAFFIC_WINDOW_BYTES) {
        bp_traffic_window_move(&at->window, spool);
        return bp_traffic_window_see(&at->window, offset, byte_count);
    }
    for (size_t done = 0; done < byte_count;) {
        int64_t got = bp_spool_read(spool, offset + done, print->segment + done, byte_count - done);
        if (got <= 0) {
            return NULL;
        }
        done += (size_t)got;
    }
    return print->segment;
}

static void tell(bp_traffic_extent *extent, lane *at) {
    const bp_traffic_record *current = &at->current;
    if (current->sequence >= at->expected_sequence) {
        extent->missing_count += current->sequence - at->expected_sequence;
        at->expected_sequence = current->sequence + 1;
    }
    extent->message_count++;
    extent->pinned_count += at->is_pinned;
    extent->cut_count += current->byte_count < current->original_bytes;
    extent->from_wall_ns = extent->message_count == 1 ? at->current_wall_ns : extent->from_wall_ns;
    extent->to_wall_ns = at->current_wall_ns;
}

static bugpack_status print_current(printer *print, lane *at) {
    bugpack_status status = BUGPACK_OK;
    if (!at->stream.is_open) {
        status = bp_pcap_write_open(&at->stream, at->current_wall_ns, bp_spool_sink, print->out);
    }
    if (status == BUGPACK_OK) {
        bp_pcap_message message = {.direction = at->current.direction,
                                   .wall_ns = at->current_wall_ns,
                                   .byte_count = at->current.byte_count,
                                   .original_bytes = at->current.original_bytes,
                                   .fetch = fetch,
                                   .source = print};
        print->source = at;
        status = bp_pcap_write_message(&at->stream, &message, bp_spool_sink, print->out);
    }
    tell(&print->extent, at);
    return status;
}

/* At most 64 channels: looking at each is cheaper than a heap. */
static lane *earliest(const printer *print) {
    lane *found = NULL;
    for (size_t i = 0; i < print->lane_count; i++) {
        lane *at = &print->lanes[i];
        if (at->has_current && (found == NULL || at->current_wall_ns < found->current_wall_ns)) {
            found = at;
        }
    }
    return found;
}

static bugpack_status print_all(printer *print, bugpack_error *error) {
    bugpack_status status = bp_pcap_write_header(bp_spool_sink, print->out);
    lane *at;
    while (status == BUGPACK_OK && (at = earliest(print)) != NULL) {
        status = print_current(print, at);
        advance(at);
    }
    for (size_t i = 0; i < print->lane_count; i++) {
        if (print->lanes[i].window.system_errno != 0) {
            return bp_fail_errno(error, print->lanes[i].window.system_errno,
                                 "cannot read recorded traffic");
        }
    }
    bugpack_status flushed = bp_spool_flush(print->out, error);
    if (flushed == BUGPACK_OK && status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot read recorded traffic: it ends too soon");
    }
    return flushed;
}

bugpack_status bp_traffic_print_pcap(bp_traffic_frozen *channels, size_t channel_count,
                                     bp_spool *out, bp_traffic_extent *ret_extent,
                                     bugpack_error *error) {
    printer *print = calloc(1, sizeof *print);
    lane *lanes = calloc(channel_count + 1, sizeof *lanes);
    bugpack_status status = BUGPACK_OK;
    if (print == NULL || lanes == NULL) {
        status = bp_fail_memory(error, "write the traffic");
        goto out;
    }
    print->lanes = lanes;
    print->lane_count = channel_count;
    print->out = out;
    for (size_t i = 0; status == BUGPACK_OK && i < channel_count; i++) {
        status = open_lane(&lanes[i], &channels[i], error);
    }
    if (status == BUGPACK_OK) {
        status = print_all(print, error);
    }
    if (status == BUGPACK_OK) {
        *ret_extent = print->extent;
    }
out:
    for (size_t i = 0; lanes != NULL && i < channel_count; i++) {
        free(lanes[i].pins);
    }
    free(lanes);
    free(print);
    return status;
}
