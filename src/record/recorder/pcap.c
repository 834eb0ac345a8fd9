#include "recorder/pcap.h"

#include <bugpack/traffic.h>

#include "base/clock.h"

/*
 * A frame: pcap record header, Ethernet, IPv4, and TCP with the options of a SYN.
 * https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-03.html, RFC 791, 9293, 7323.
 */
enum {
    record_bytes = 16,
    ethernet_bytes = 14,
    ipv4_bytes = 20,
    tcp_bytes = 20,
    tcp_option_bytes = 8,
    frame_header_max = record_bytes + ethernet_bytes + ipv4_bytes + tcp_bytes + tcp_option_bytes
};

static const uint32_t magic_nanoseconds = 0xa1b23c4d;
static const uint32_t snap_bytes = 262144;
static const uint32_t link_ethernet = 1;

#define FLAG_SYN 0x02u
#define FLAG_PSH 0x08u
#define FLAG_ACK 0x10u

/* Offered in a SYN: a window counts in units of 1 << this. */
#define WINDOW_SHIFT 14u

/* 65,535 << 14 is nearly 1 GiB; at most a quarter of that stays unacknowledged. */
static const uint16_t window_full = 65535;
static const uint32_t unacknowledged_max = (uint32_t)1 << 28;

/* The addresses come from the stream. */
typedef struct frame {
    const bp_pcap_stream *stream;
    unsigned direction;
    uint64_t wall_ns;
    uint32_t sequence, acknowledgement;
    uint16_t ip_id, window;
    uint8_t flags;
    const void *bytes; /* of the payload: */
    size_t byte_count, original_bytes;
} frame;

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

/* The Internet checksum (RFC 1071). All pieces but the last have an even length. */
static uint64_t add_to_checksum(uint64_t sum, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    for (; byte_count >= 2; byte_count -= 2, at += 2) {
        sum += (unsigned)(at[0] << 8 | at[1]);
    }
    return byte_count > 0 ? sum + (unsigned)(at[0] << 8) : sum;
}

static uint16_t fold_checksum(uint64_t sum) {
    while (sum >> 16 != 0) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return (uint16_t)~sum;
}

/* 02:… is a locally administered address (IEEE 802). */
static unsigned char *put_mac(unsigned char *at, const bp_pcap_stream *stream, bool is_host) {
    at = put_be16(at, 0x0200);
    at = put_be16(at, 0);
    *at++ = (unsigned char)stream->number;
    *at++ = is_host ? 1 : 2;
    return at;
}

static unsigned char *put_address(unsigned char *at, const bp_pcap_stream *stream, bool is_host) {
    *at++ = 10;
    *at++ = (unsigned char)(stream->number >> 8);
    *at++ = (unsigned char)stream->number;
    *at++ = is_host ? 1 : 2;
    return at;
}

static unsigned char *put_ip(unsigned char *at, const frame *of, size_t payload_bytes) {
    static const uint8_t protocol_tcp = 6, hop_limit = 64;
    bool from_host = of->direction == BUGPACK_SENT;
    unsigned char *start = at;
    at = put_be16(at, 0x4500);
    at = put_be16(at, (unsigned)(ipv4_bytes + payload_bytes));
    at = put_be16(at, of->ip_id);
    at = put_be16(at, 0x4000); /* don't fragment */
    *at++ = hop_limit;
    *at++ = protocol_tcp;
    at = put_be16(at, 0); /* checksum */
    at = put_address(at, of->stream, from_host);
    at = put_address(at, of->stream, !from_host);
    (void)put_be16(start + 10, fold_checksum(add_to_checksum(0, start, ipv4_bytes)));
    return at;
}

/* The bytes of a segment that were not kept count as 0; without them nobody can check it. */
static void put_tcp_checksum(unsigned char *tcp, size_t header_bytes, const frame *of) {
    unsigned char pseudo[2 * 4 + 8];
    unsigned char *at = put_address(pseudo, of->stream, true);
    at = put_address(at, of->stream, false);
    at = put_be32(at, (uint32_t)(header_bytes + of->original_bytes));
    at = put_be32(at, 6);
    uint64_t sum = add_to_checksum(0, pseudo, (size_t)(at - pseudo));
    sum = add_to_checksum(sum, tcp, header_bytes);
    sum = add_to_checksum(sum, of->bytes, of->byte_count);
    (void)put_be16(tcp + 16, fold_checksum(sum));
}

static unsigned char *put_tcp(unsigned char *at, const frame *of) {
    bool from_host = of->direction == BUGPACK_SENT;
    bool has_options = (of->flags & FLAG_SYN) != 0;
    unsigned char *start = at;
    at = put_be16(at, from_host ? of->stream->host_port : of->stream->peer_port);
    at = put_be16(at, from_host ? of->stream->peer_port : of->stream->host_port);
    at = put_be32(at, of->sequence);
    at = put_be32(at, of->acknowledgement);
    unsigned words = (tcp_bytes + (has_options ? tcp_option_bytes : 0)) / 4;
    *at++ = (unsigned char)(words << 4);
    *at++ = of->flags;
    at = put_be16(at, of->window);
    at = put_be32(at, 0); /* checksum, no urgent data */
    if (has_options) {
        at = put_be16(at, 0x0204); /* maximum segment size, of four bytes */
        at = put_be16(at, BP_PCAP_SEGMENT_BYTES);
        at = put_be32(at, 0x01030300u | WINDOW_SHIFT); /* nothing; window scale, of three bytes */
    }
    put_tcp_checksum(start, (size_t)(at - start), of);
    return at;
}

static bugpack_status write_frame(const frame *of, bp_sink *sink, void *context) {
    unsigned char header[frame_header_max];
    bool from_host = of->direction == BUGPACK_SENT;
    size_t tcp_header = tcp_bytes + ((of->flags & FLAG_SYN) != 0 ? tcp_option_bytes : 0);
    size_t headers = ethernet_bytes + ipv4_bytes + tcp_header;
    unsigned char *at = put_le32(header, (uint32_t)(of->wall_ns / BP_NS_PER_SEC));
    at = put_le32(at, (uint32_t)(of->wall_ns % BP_NS_PER_SEC));
    at = put_le32(at, (uint32_t)(headers + of->byte_count));
    at = put_le32(at, (uint32_t)(headers + of->original_bytes));
    at = put_mac(at, of->stream, !from_host);
    at = put_mac(at, of->stream, from_host);
    at = put_be16(at, 0x0800);
    at = put_ip(at, of, tcp_header + of->original_bytes);
    at = put_tcp(at, of);
    bugpack_status status = sink(context, header, (size_t)(at - header));
    if (status == BUGPACK_OK && of->byte_count > 0) {
        status = sink(context, of->bytes, of->byte_count);
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

/* Writes the next frame of a direction. */
static bugpack_status extend(bp_pcap_stream *stream, unsigned direction, uint64_t wall_ns,
                             uint8_t flags, const frame *payload, bp_sink *sink, void *context) {
    frame made = *payload;
    made.stream = stream;
    made.direction = direction;
    made.wall_ns = wall_ns;
    made.flags = flags;
    made.sequence = stream->next_sequence[direction];
    made.ip_id = stream->next_ip_id[direction]++;
    made.window = stream->window[direction];
    if ((flags & FLAG_ACK) != 0) {
        made.acknowledgement = stream->next_sequence[!direction];
        stream->acknowledged[!direction] = made.acknowledgement;
    }
    stream->next_sequence[direction] +=
        (uint32_t)payload->original_bytes + ((flags & FLAG_SYN) != 0 ? 1 : 0);
    stream->frame_count++;
    return sink == NULL ? BUGPACK_OK : write_frame(&made, sink, context);
}

bugpack_status bp_pcap_write_open(bp_pcap_stream *stream, uint64_t wall_ns, bp_sink *sink,
                                  void *context) {
    static const frame nothing = {0};
    unsigned client = stream->host_is_server ? BUGPACK_RECEIVED : BUGPACK_SENT;
    stream->window[0] = stream->window[1] = window_full;
    stream->acknowledged[client] = stream->next_sequence[client];
    bugpack_status status = extend(stream, client, wall_ns, FLAG_SYN, &nothing, sink, context);
    if (status == BUGPACK_OK) {
        status = extend(stream, !client, wall_ns, FLAG_SYN | FLAG_ACK, &nothing, sink, context);
    }
    if (status == BUGPACK_OK) {
        status = extend(stream, client, wall_ns, FLAG_ACK, &nothing, sink, context);
    }
    stream->is_open = status == BUGPACK_OK;
    return status;
}

/* Writes one segment of a message. */
static bugpack_status write_segment(bp_pcap_stream *stream, const bp_pcap_message *message,
                                    uint8_t flags, const frame *payload, bp_sink *sink,
                                    void *context) {
    static const frame nothing = {0};
    unsigned direction = message->direction;
    uint32_t in_flight = stream->next_sequence[direction] - stream->acknowledged[direction];
    if (in_flight > unacknowledged_max) {
        bugpack_status status =
            extend(stream, !direction, message->wall_ns, FLAG_ACK, &nothing, sink, context);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    if (payload->original_bytes == 0) {
        /* The same frame twice would be a duplicate acknowledgement, so change the window. */
        stream->window[direction] ^= 1;
    }
    if (stream->message_frame == 0) {
        stream->message_frame = stream->frame_count + 1;
    }
    return extend(stream, direction, message->wall_ns, flags, payload, sink, context);
}

bugpack_status bp_pcap_write_message(bp_pcap_stream *stream, const bp_pcap_message *message,
                                     bp_sink *sink, void *context) {
    bugpack_status status = BUGPACK_OK;
    uint64_t total = message->original_bytes > message->byte_count ? message->original_bytes
                                                                   : message->byte_count;
    total = total < BP_PCAP_MESSAGE_MAX_BYTES ? total : BP_PCAP_MESSAGE_MAX_BYTES;
    uint64_t offset = 0;
    stream->message_frame = 0;
    do {
        uint64_t left = total - offset;
        frame payload = {.original_bytes =
                             left < BP_PCAP_SEGMENT_BYTES ? (size_t)left : BP_PCAP_SEGMENT_BYTES};
        uint64_t kept = offset < message->byte_count ? message->byte_count - offset : 0;
        payload.byte_count = kept < payload.original_bytes ? (size_t)kept : payload.original_bytes;
        if (payload.byte_count > 0 && sink != NULL) {
            payload.bytes = message->fetch(message->source, offset, payload.byte_count);
            if (payload.bytes == NULL) {
                return BUGPACK_ERR_IO;
            }
        }
        offset += payload.original_bytes;
        uint8_t flags = FLAG_ACK | (offset == total ? FLAG_PSH : 0);
        status = write_segment(stream, message, flags, &payload, sink, context);
    } while (status == BUGPACK_OK && offset < total);
    return status;
}
