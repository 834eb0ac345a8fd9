/*
 * Reads a traffic.pcap back for unit tests; what Wireshark makes of one is tested with tshark.
 */
#ifndef TESTS_SUPPORT_TRAFFIC_PCAP_H
#define TESTS_SUPPORT_TRAFFIC_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "base/temp_file.h"

typedef struct traffic_frame {
    uint64_t wall_ns;
    unsigned number;    /* of the channel, from the address */
    unsigned direction; /* a bugpack_direction */
    uint32_t sequence, acknowledgement;
    unsigned flags;
    size_t payload_offset, payload_captured, payload_real;
} traffic_frame;

typedef struct traffic_pcap {
    bp_buffer bytes;
    traffic_frame *frames;
    size_t frame_count;
    uint64_t first_wall_ns, last_wall_ns;
} traffic_pcap;

/* Takes a flushed spool apart. False when it is not a whole pcap. */
bool traffic_pcap_read(const bp_temp_file *temp_file, traffic_pcap *ret_pcap);
void traffic_pcap_release(traffic_pcap *pcap);

/* The captured payload of one direction, frame after frame. The caller releases it. */
void traffic_pcap_stream(const traffic_pcap *pcap, unsigned number, unsigned direction,
                         bp_buffer *ret_bytes);

/* Whether each frame begins where the one before it in its direction ended. */
bool traffic_pcap_is_gapless(const traffic_pcap *pcap);

/* Whether no frame is older than the one before it. */
bool traffic_pcap_is_in_order(const traffic_pcap *pcap);

#endif
