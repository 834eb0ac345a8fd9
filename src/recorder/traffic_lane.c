#include "recorder/traffic_lane.h"

#include <stdlib.h>

#include "base/status.h"

static int compare_pins(const void *left, const void *right) {
    uint64_t a = ((const bp_traffic_pin *)left)->sequence,
             b = ((const bp_traffic_pin *)right)->sequence;
    return a < b ? -1 : a > b;
}

/* More than bp_traffic_pins_ring_bytes allows; a file may claim any number. */
static const size_t pin_count_max = 128 * 1024;

/* Threads may pin in another order than they record, so pins are sorted. */
static bugpack_status index_pins(bp_traffic_lane *at, bugpack_error *error) {
    size_t capacity = 0;
    uint64_t offset = 0, begin = 0;
    bp_traffic_record record;
    bp_traffic_window_move(&at->window, &at->snapshot->pins);
    while (at->pin_count < pin_count_max && bp_traffic_record_next(&at->window, &offset, &record)) {
        if (at->pin_count == capacity) {
            capacity = capacity == 0 ? 64 : 2 * capacity;
            bp_traffic_pin *grown = realloc(at->pins, capacity * sizeof *grown);
            if (grown == NULL) {
                return bp_fail_memory(error, "write the traffic");
            }
            at->pins = grown;
        }
        at->pins[at->pin_count++] = (bp_traffic_pin){.sequence = record.sequence, .offset = begin};
        begin = offset;
    }
    if (at->pin_count > 1) {
        qsort(at->pins, at->pin_count, sizeof *at->pins, compare_pins);
    }
    return BUGPACK_OK;
}

static void read_message(bp_traffic_lane *at) {
    bp_traffic_window_move(&at->window, &at->snapshot->messages);
    at->has_message = bp_temp_file_is_open(&at->snapshot->messages) &&
                      bp_traffic_record_next(&at->window, &at->message_offset, &at->message);
}

/* Reads the next pinned message, if it is older than the ring's next one. */
static bool read_pin(bp_traffic_lane *at) {
    while (at->next_pin < at->pin_count) {
        const bp_traffic_pin *next = &at->pins[at->next_pin];
        if (at->has_message && next->sequence > at->message.sequence) {
            return false;
        }
        at->next_pin++;
        if (at->has_message && next->sequence == at->message.sequence) {
            continue;
        }
        uint64_t offset = next->offset;
        bp_traffic_window_move(&at->window, &at->snapshot->pins);
        if (bp_traffic_record_next(&at->window, &offset, &at->current)) {
            return true;
        }
    }
    return false;
}

void bp_traffic_lane_advance(bp_traffic_lane *at) {
    if (at->has_current && !at->is_pinned) {
        read_message(at); /* only now: the last one's bytes were fetched from the same window */
    }
    at->is_pinned = read_pin(at);
    at->has_current = at->is_pinned;
    if (!at->is_pinned && at->has_message) {
        at->current = at->message;
        at->has_current = true;
    }
    if (at->has_current) {
        uint64_t wall_ns = at->current.monotonic_ns + at->snapshot->wall_offset_ns;
        at->current_wall_ns = wall_ns > at->current_wall_ns ? wall_ns : at->current_wall_ns;
    }
}

bugpack_status bp_traffic_lane_open(bp_traffic_lane *at, bp_traffic_snapshot *snapshot,
                                    bugpack_error *error) {
    const bp_traffic_identity *identity = &snapshot->identity;
    at->snapshot = snapshot;
    at->expected_sequence = 1;
    at->stream = (bp_pcap_stream){.is_ipv6 = identity->is_ipv6 != 0,
                                  .host_is_server = identity->host_is_server != 0,
                                  .host_port = identity->host_port,
                                  .peer_port = identity->peer_port,
                                  .number = identity->number};
    bugpack_status status = BUGPACK_OK;
    if (bp_temp_file_is_open(&snapshot->messages)) {
        status = bp_temp_file_flush(&snapshot->messages, error);
    }
    if (status == BUGPACK_OK && bp_temp_file_is_open(&snapshot->pins)) {
        status = bp_temp_file_flush(&snapshot->pins, error);
        if (status == BUGPACK_OK) {
            status = index_pins(at, error);
        }
    }
    if (status == BUGPACK_OK) {
        read_message(at);
        bp_traffic_lane_advance(at);
    }
    return status;
}

void bp_traffic_lane_release(bp_traffic_lane *at) {
    free(at->pins);
    at->pins = NULL;
}
