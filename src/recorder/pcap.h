/*
 * Frames that Wireshark reassembles: a classic pcap file (nanosecond magic) with Ethernet, IPv4 or
 * IPv6, and TCP. Pure: bytes in, bytes out.
 */
#ifndef BP_RECORDER_PCAP_H
#define BP_RECORDER_PCAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"

/* One TCP connection being written. Addresses come from `number`, so that two channels never meet:
 * 10.x for IPv4 (host 10.0.n.1, peer 10.0.n.2), fd00::/8 for IPv6. */
typedef struct bp_pcap_stream {
    bool is_ipv6;
    bool host_is_server;
    uint16_t host_port, peer_port;
    uint32_t number;
    uint32_t next_sequence[2]; /* by bugpack_direction; 32-bit and wrapping, like TCP's */
    uint16_t next_ip_id[2];
    bool is_open; /* the three-way handshake has been written */
} bp_pcap_stream;

/* The file header: magic 0xa1b23c4d, link type Ethernet, snap length 262,144. */
bugpack_status bp_pcap_write_header(bp_sink *sink, void *context);

/* A handshake of three frames, so that Wireshark knows who the server is and where numbers begin.
 */
bugpack_status bp_pcap_write_open(bp_pcap_stream *stream, uint64_t wall_ns, bp_sink *sink,
                                  void *context);

/*
 * One message as segments of at most 65,000 bytes of payload with right checksums and running
 * acknowledgements; PSH on the last. `original_bytes` above `byte_count` means that the rest was
 * not kept: the last frame then has a captured length below its real one (as a snap length makes
 * it), and sequence numbers advance by the real length.
 */
bugpack_status bp_pcap_write_message(bp_pcap_stream *stream, unsigned direction, uint64_t wall_ns,
                                     const void *bytes, size_t byte_count, uint64_t original_bytes,
                                     bp_sink *sink, void *context);

#endif
