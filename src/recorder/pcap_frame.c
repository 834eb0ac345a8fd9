#include "recorder/pcap_frame.h"

#include <string.h>

#include <bugpack/traffic.h>

#include "base/clock.h"
#include "recorder/checksum.h"

/*
 * A record's header, Ethernet, IPv4 or IPv6, and TCP with the options of a SYN.
 * https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03.html, RFC 791, 8200, 9293, 7323.
 */
enum {
    record_bytes = 16,
    ethernet_bytes = 14,
    ipv4_bytes = 20,
    ipv6_bytes = 40,
    tcp_bytes = 20,
    tcp_option_bytes = 8,
    frame_header_max = record_bytes + ethernet_bytes + ipv6_bytes + tcp_bytes + tcp_option_bytes
};

static const uint32_t magic_nanoseconds = 0xa1b23c4d;
static const uint32_t snap_bytes = 262144;
static const uint32_t link_ethernet = 1;

static unsigned char *put_le16(unsigned char *at, unsigned value) {
    at[0] = (unsigned char)value;
    at[1] = (unsigned char)(value >> 8);
    return at + 2;
}

static unsigned char *put_le32(unsigned char *at, uint32_t value) {
    return put_le16(put_le16(at, value & 0xffff), value >> 16);
}

static unsigned char *put_be16(unsigned char *at, unsigned value) {
    at[0] = (unsigned char)(value >> 8);
    at[1] = (unsigned char)value;
    return at + 2;
}

static unsigned char *put_be32(unsigned char *at, uint32_t value) {
    return put_be16(put_be16(at, value >> 16), value & 0xffff);
}

/* 02:… is a locally administered address (IEEE 802): no maker's card has it. */
static unsigned char *put_mac(unsigned char *at, const bp_pcap_stream *stream, bool is_host) {
    at = put_be16(at, 0x0200);
    at = put_be16(at, 0);
    *at++ = (unsigned char)stream->number;
    *at++ = is_host ? 1 : 2;
    return at;
}

static unsigned char *put_address(unsigned char *at, const bp_pcap_stream *stream, bool is_host) {
    if (!stream->is_ipv6) {
        *at++ = 10;
        *at++ = (unsigned char)(stream->number >> 8);
        *at++ = (unsigned char)stream->number;
        *at++ = is_host ? 1 : 2;
        return at;
    }
    memset(at, 0, 16);
    at[0] = 0xfd; /* RFC 4193: a local address */
    (void)put_be16(at + 12, stream->number & 0xffff);
    at[15] = is_host ? 1 : 2;
    return at + 16;
}

static unsigned char *put_ip(unsigned char *at, const bp_pcap_frame *frame, size_t payload_bytes) {
    static const uint8_t protocol_tcp = 6, hop_limit = 64;
    bool from_host = frame->direction == BUGPACK_SENT;
    unsigned char *start = at;
    if (frame->stream->is_ipv6) {
        at = put_be32(at, (uint32_t)6 << 28);
        at = put_be16(at, (unsigned)payload_bytes);
        *at++ = protocol_tcp;
        *at++ = hop_limit;
    } else {
        at = put_be16(at, 0x4500);
        at = put_be16(at, (unsigned)(ipv4_bytes + payload_bytes));
        at = put_be16(at, frame->ip_id);
        at = put_be16(at, 0x4000); /* don't fragment */
        *at++ = hop_limit;
        *at++ = protocol_tcp;
        at = put_be16(at, 0); /* the checksum's place */
    }
    at = put_address(at, frame->stream, from_host);
    at = put_address(at, frame->stream, !from_host);
    if (!frame->stream->is_ipv6) {
        uint16_t sum = bp_checksum_fold(bp_checksum_add(0, start, ipv4_bytes));
        (void)put_be16(start + 10, sum);
    }
    return at;
}

/*
 * The checksum of a segment of which a part was not kept cannot be known; nobody checks it, since
 * nobody has those bytes. It is made as if they were 0.
 */
static void put_tcp_checksum(unsigned char *tcp, size_t header_bytes, const bp_pcap_frame *frame) {
    unsigned char pseudo[2 * 16 + 8];
    unsigned char *at = put_address(pseudo, frame->stream, true);
    at = put_address(at, frame->stream, false);
    at = put_be32(at, (uint32_t)(header_bytes + frame->original_bytes));
    at = put_be32(at, 6);
    uint64_t sum = bp_checksum_add(0, pseudo, (size_t)(at - pseudo));
    sum = bp_checksum_add(sum, tcp, header_bytes);
    sum = bp_checksum_add(sum, frame->bytes, frame->byte_count);
    (void)put_be16(tcp + 16, bp_checksum_fold(sum));
}

static unsigned char *put_tcp(unsigned char *at, const bp_pcap_frame *frame) {
    bool from_host = frame->direction == BUGPACK_SENT;
    bool has_options = (frame->flags & BP_PCAP_SYN) != 0;
    unsigned char *start = at;
    at = put_be16(at, from_host ? frame->stream->host_port : frame->stream->peer_port);
    at = put_be16(at, from_host ? frame->stream->peer_port : frame->stream->host_port);
    at = put_be32(at, frame->sequence);
    at = put_be32(at, frame->acknowledgement);
    unsigned words = (tcp_bytes + (has_options ? tcp_option_bytes : 0)) / 4;
    *at++ = (unsigned char)(words << 4);
    *at++ = frame->flags;
    at = put_be16(at, frame->window);
    at = put_be32(at, 0); /* the checksum's place, and no urgent data */
    if (has_options) {
        at = put_be16(at, 0x0204); /* maximum segment size, of four bytes */
        at = put_be16(at, BP_PCAP_SEGMENT_BYTES);
        at = put_be32(at, 0x01030300u |
                              BP_PCAP_WINDOW_SHIFT); /* nothing; window scale, of three bytes */
    }
    put_tcp_checksum(start, (size_t)(at - start), frame);
    return at;
}

bugpack_status bp_pcap_frame_write(const bp_pcap_frame *frame, bp_sink *sink, void *context) {
    unsigned char head[frame_header_max];
    bool from_host = frame->direction == BUGPACK_SENT;
    size_t tcp_header = tcp_bytes + ((frame->flags & BP_PCAP_SYN) != 0 ? tcp_option_bytes : 0);
    size_t ip_header = frame->stream->is_ipv6 ? ipv6_bytes : ipv4_bytes;
    size_t heads = ethernet_bytes + ip_header + tcp_header;
    unsigned char *at = put_le32(head, (uint32_t)(frame->wall_ns / BP_NS_PER_SEC));
    at = put_le32(at, (uint32_t)(frame->wall_ns % BP_NS_PER_SEC));
    at = put_le32(at, (uint32_t)(heads + frame->byte_count));
    at = put_le32(at, (uint32_t)(heads + frame->original_bytes));
    at = put_mac(at, frame->stream, !from_host);
    at = put_mac(at, frame->stream, from_host);
    at = put_be16(at, frame->stream->is_ipv6 ? 0x86dd : 0x0800);
    at = put_ip(at, frame, tcp_header + frame->original_bytes);
    at = put_tcp(at, frame);
    bugpack_status status = sink(context, head, (size_t)(at - head));
    if (status == BUGPACK_OK && frame->byte_count > 0) {
        status = sink(context, frame->bytes, frame->byte_count);
    }
    return status;
}

bugpack_status bp_pcap_write_header(bp_sink *sink, void *context) {
    unsigned char header[BP_PCAP_HEADER_BYTES];
    unsigned char *at = put_le32(header, magic_nanoseconds);
    at = put_le16(at, 2); /* version 2.4, the only one there is */
    at = put_le16(at, 4);
    at = put_le32(at, 0);
    at = put_le32(at, 0);
    at = put_le32(at, snap_bytes);
    (void)put_le32(at, link_ethernet);
    return sink(context, header, sizeof header);
}
