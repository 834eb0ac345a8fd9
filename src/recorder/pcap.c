#include "recorder/pcap.h"

#include <bugpack/traffic.h>

#include "recorder/pcap_frame.h"

/* 65,535 << 14 is nearly 1 GiB, and a quarter of that is the most that stays unacknowledged. */
static const uint16_t window_full = 65535;
static const uint32_t unacknowledged_max = (uint32_t)1 << 28;

/* Writes a frame at the end of its direction and moves that end. */
static bugpack_status extend(bp_pcap_stream *stream, unsigned direction, uint64_t wall_ns,
                             uint8_t flags, const bp_pcap_frame *payload, bp_sink *sink,
                             void *context) {
    bp_pcap_frame made = *payload;
    made.stream = stream;
    made.direction = direction;
    made.wall_ns = wall_ns;
    made.flags = flags;
    made.sequence = stream->next_sequence[direction];
    made.ip_id = stream->next_ip_id[direction]++;
    made.window = stream->window[direction];
    if ((flags & BP_PCAP_ACK) != 0) {
        made.acknowledgement = stream->next_sequence[!direction];
        stream->acknowledged[!direction] = made.acknowledgement;
    }
    stream->next_sequence[direction] +=
        (uint32_t)payload->original_bytes + ((flags & BP_PCAP_SYN) != 0 ? 1 : 0);
    stream->frame_count++;
    return bp_pcap_frame_write(&made, sink, context);
}

bugpack_status bp_pcap_write_open(bp_pcap_stream *stream, uint64_t wall_ns, bp_sink *sink,
                                  void *context) {
    static const bp_pcap_frame nothing = {0};
    unsigned client = stream->host_is_server ? BUGPACK_RECEIVED : BUGPACK_SENT;
    stream->window[0] = stream->window[1] = window_full;
    stream->acknowledged[client] = stream->next_sequence[client];
    bugpack_status status = extend(stream, client, wall_ns, BP_PCAP_SYN, &nothing, sink, context);
    if (status == BUGPACK_OK) {
        status =
            extend(stream, !client, wall_ns, BP_PCAP_SYN | BP_PCAP_ACK, &nothing, sink, context);
    }
    if (status == BUGPACK_OK) {
        status = extend(stream, client, wall_ns, BP_PCAP_ACK, &nothing, sink, context);
    }
    stream->is_open = status == BUGPACK_OK;
    return status;
}

/* Writes `byte_count` bytes that were kept of `original_bytes`, one segment's share of a message.
 */
static bugpack_status write_segment(bp_pcap_stream *stream, const bp_pcap_message *message,
                                    uint8_t flags, const bp_pcap_frame *payload, bp_sink *sink,
                                    void *context) {
    static const bp_pcap_frame nothing = {0};
    unsigned direction = message->direction;
    uint32_t in_flight = stream->next_sequence[direction] - stream->acknowledged[direction];
    if (in_flight > unacknowledged_max) {
        bugpack_status status =
            extend(stream, !direction, message->wall_ns, BP_PCAP_ACK, &nothing, sink, context);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    if (payload->original_bytes == 0) {
        /* Twice the same frame would be a duplicate acknowledgement; a new window is just that. */
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
        bp_pcap_frame payload = {
            .original_bytes = left < BP_PCAP_SEGMENT_BYTES ? (size_t)left : BP_PCAP_SEGMENT_BYTES};
        uint64_t kept = offset < message->byte_count ? message->byte_count - offset : 0;
        payload.byte_count = kept < payload.original_bytes ? (size_t)kept : payload.original_bytes;
        if (payload.byte_count > 0) {
            payload.bytes = message->fetch(message->source, offset, payload.byte_count);
            if (payload.bytes == NULL) {
                return BUGPACK_ERR_IO;
            }
        }
        offset += payload.original_bytes;
        uint8_t flags = BP_PCAP_ACK | (offset == total ? BP_PCAP_PSH : 0);
        status = write_segment(stream, message, flags, &payload, sink, context);
    } while (status == BUGPACK_OK && offset < total);
    return status;
}
