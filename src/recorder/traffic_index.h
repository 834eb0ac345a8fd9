/*
 * traffic-index.jsonl: what the frames of a pcap cannot say of a message.
 */
#ifndef BP_RECORDER_TRAFFIC_INDEX_H
#define BP_RECORDER_TRAFFIC_INDEX_H

#include "base/buffer.h"
#include "recorder/traffic_lane.h"

/*
 * Appends a line for the current message of a lane, whose first frame in the pcap has the number
 * `frame`, counted from 1 as Wireshark does. A failure sticks to `out`.
 */
void bp_traffic_index_print(const bp_traffic_lane *at, uint64_t frame, bp_buffer *out);

#endif
