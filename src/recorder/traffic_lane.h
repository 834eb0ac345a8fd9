/*
 * The messages of one channel, one by one in the ring's order; first those that only the pins still
 * have.
 */
#ifndef BP_RECORDER_TRAFFIC_LANE_H
#define BP_RECORDER_TRAFFIC_LANE_H

#include "recorder/pcap.h"
#include "recorder/traffic.h"
#include "recorder/traffic_record.h"

/* A pinned message, and the offset of its record in the file of pins. */
typedef struct bp_traffic_pin {
    uint64_t sequence, offset;
} bp_traffic_pin;

/* A position in a channel. All zero before it is opened. */
typedef struct bp_traffic_lane {
    const bp_traffic_snapshot *snapshot;
    bp_pcap_stream stream;
    bp_traffic_window window;
    bp_traffic_pin *pins; /* ascending by sequence */
    size_t pin_count, next_pin;
    uint64_t message_offset;
    bp_traffic_record message; /* the next one of the ring */
    bp_traffic_record current; /* the next one of this lane */
    bool has_message, has_current, is_pinned;
    uint64_t current_wall_ns;
    uint64_t expected_sequence; /* of the next message, if none is missing */
} bp_traffic_lane;

/* Borrows the channel and moves to its first message. IO, NO_MEMORY. */
bugpack_status bp_traffic_lane_open(bp_traffic_lane *at, bp_traffic_snapshot *snapshot,
                                    bugpack_error *error);
void bp_traffic_lane_release(bp_traffic_lane *at);

/* Moves to the next message. Times never run backwards. */
void bp_traffic_lane_advance(bp_traffic_lane *at);

#endif
