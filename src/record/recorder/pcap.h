/*
 * Frames that Wireshark reassembles: a classic pcap file (nanosecond magic, little endian) with
 * Ethernet, IPv4 and TCP. No memory is allocated.
 *
 * A cut message looks as if a snap length had cut it: the headers have the real length and the
 * record has fewer bytes, so Wireshark says "packet size limited during capture", not "segment
 * lost". Segments after the kept bytes are frames with headers alone.
 */
#ifndef BP_RECORDER_PCAP_H
#define BP_RECORDER_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"

/* The most payload that one segment has: with headers it stays below IPv4's 65,535 bytes. */
#define BP_PCAP_SEGMENT_BYTES 65000u

/* The length that a longer message gets: a damaged record must not become millions of frames. */
#define BP_PCAP_MESSAGE_MAX_BYTES ((uint64_t)256 << 20)

/*
 * One TCP connection being written. Addresses come from `number` (its low 16 bits), different
 * for each channel: 10.0.n.1 is the host and 10.0.n.2 its peer.
 * Fields not named by an initialiser may be 0; `next_sequence` is where numbering begins.
 */
typedef struct bp_pcap_stream {
    bool host_is_server;
    uint16_t host_port, peer_port;
    uint32_t number;
    uint32_t next_sequence[2]; /* by bugpack_direction; 32-bit and wrapping, like TCP's */
    uint32_t acknowledged[2];  /* by the other side */
    uint16_t next_ip_id[2];
    uint16_t window[2];     /* of the newest frame; 0: none yet */
    bool is_open;           /* the three-way handshake has been written */
    uint64_t frame_count;   /* written so far, of this connection */
    uint64_t message_frame; /* the newest message's first frame, from 1 */
} bp_pcap_stream;

/* The file header: magic 0xa1b23c4d, link type Ethernet, snap length 262,144. */
#define BP_PCAP_HEADER_BYTES 24
bugpack_status bp_pcap_write_header(bp_sink *sink, void *context);

/*
 * With a NULL sink, the two below only count frames and move numbers on; nothing is fetched.
 *
 * A handshake of three frames, so that Wireshark knows who the server is and where numbers begin.
 * All three have the time of the first message, before which nothing is known.
 */
bugpack_status bp_pcap_write_open(bp_pcap_stream *stream, uint64_t wall_ns, bp_sink *sink,
                                  void *context);

/*
 * Gives `byte_count` bytes of a message from `offset` on, valid until the next call, or NULL when
 * they cannot be read. At most BP_PCAP_SEGMENT_BYTES per call.
 */
typedef const void *bp_pcap_fetch(void *source, uint64_t offset, size_t byte_count);

/* A message. `byte_count` bytes were kept of `original_bytes`. */
typedef struct bp_pcap_message {
    unsigned direction; /* a bugpack_direction */
    uint64_t wall_ns;
    uint64_t byte_count, original_bytes;
    bp_pcap_fetch *fetch;
    void *source;
} bp_pcap_message;

/*
 * One message as segments with right checksums and running acknowledgements, PSH on the last. A
 * message of 0 bytes is a frame without payload. Where a window would be full, an acknowledgement
 * of the other side is inserted. Errors: the sink's; IO when a fetch fails.
 */
bugpack_status bp_pcap_write_message(bp_pcap_stream *stream, const bp_pcap_message *message,
                                     bp_sink *sink, void *context);

#endif
