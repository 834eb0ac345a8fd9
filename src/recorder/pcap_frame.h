/*
 * One frame of a pcap file, byte by byte.
 */
#ifndef BP_RECORDER_PCAP_FRAME_H
#define BP_RECORDER_PCAP_FRAME_H

#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"
#include "recorder/pcap.h"

#define BP_PCAP_SYN 0x02u
#define BP_PCAP_PSH 0x08u
#define BP_PCAP_ACK 0x10u

/* A SYN offers a window scale: a window counts in units of 1 << this. */
#define BP_PCAP_WINDOW_SHIFT 14u

/* What a frame says, beside the addresses that come from its stream. */
typedef struct bp_pcap_frame {
    const bp_pcap_stream *stream;
    unsigned direction;
    uint64_t wall_ns;
    uint32_t sequence, acknowledgement;
    uint16_t ip_id, window;
    uint8_t flags;
    const void *bytes; /* of the payload: */
    size_t byte_count, original_bytes;
} bp_pcap_frame;

/* The file's record of it. `original_bytes` is at least `byte_count`. */
bugpack_status bp_pcap_frame_write(const bp_pcap_frame *frame, bp_sink *sink, void *context);

#endif
