#include "recorder/pcap.h"

#include <bugpack/traffic.h>

#include "base/buffer.h"
#include "unit/unit.h"

static bugpack_status to_buffer(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

static const void *from_memory(void *source, uint64_t offset, size_t byte_count) {
    return (const unsigned char *)source + offset;
}

static const void *from_nowhere(void *source, uint64_t offset, size_t byte_count) {
    return NULL;
}

static uint32_t le32(const unsigned char *at) {
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint32_t be16(const unsigned char *at) {
    return (uint32_t)at[0] << 8 | at[1];
}

static uint32_t be32(const unsigned char *at) {
    return be16(at) << 16 | be16(at + 2);
}

/* Slow and plain, unlike the one under test: 0xffff when all is right. */
static uint32_t sum_of(uint32_t sum, const unsigned char *at, size_t byte_count) {
    for (size_t i = 0; i < byte_count; i++) {
        sum += i % 2 == 0 ? (uint32_t)at[i] << 8 : at[i];
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

enum { ip_bytes = 20 };

/* A frame taken apart again. */
typedef struct parsed {
    uint32_t seconds, nanoseconds, captured, real;
    const unsigned char *ip, *tcp, *payload;
    size_t tcp_bytes, payload_captured, payload_real;
    uint32_t sequence, acknowledgement;
    unsigned flags;
} parsed;

static bool next_frame(const bp_buffer *file, size_t *offset, parsed *ret_frame) {
    const unsigned char *at = (const unsigned char *)file->data + *offset;
    if (*offset + 16 > file->size) {
        return false;
    }
    parsed frame = {.seconds = le32(at),
                    .nanoseconds = le32(at + 4),
                    .captured = le32(at + 8),
                    .real = le32(at + 12),
                    .ip = at + 30};
    frame.tcp = frame.ip + ip_bytes;
    frame.tcp_bytes = (size_t)(frame.tcp[12] >> 4) * 4;
    frame.payload = frame.tcp + frame.tcp_bytes;
    size_t heads = 14 + ip_bytes + frame.tcp_bytes;
    frame.payload_captured = frame.captured - heads;
    frame.payload_real = frame.real - heads;
    frame.sequence = be32(frame.tcp + 4);
    frame.acknowledgement = be32(frame.tcp + 8);
    frame.flags = frame.tcp[13];
    *offset += 16 + frame.captured;
    *ret_frame = frame;
    return *offset <= file->size;
}

static uint32_t tcp_sum(const parsed *frame) {
    size_t length = frame->tcp_bytes + frame->payload_captured;
    uint32_t sum = sum_of(0, frame->ip + 12, 8);
    sum += 6 + (uint32_t)(length >> 16) + (length & 0xffff);
    return sum_of(sum, frame->tcp, length);
}

static void write_message(bp_pcap_stream *stream, bp_buffer *out, unsigned direction,
                          uint64_t wall_ns, const void *bytes, size_t byte_count,
                          uint64_t original_bytes) {
    bp_pcap_message message = {.direction = direction,
                               .wall_ns = wall_ns,
                               .byte_count = byte_count,
                               .original_bytes = original_bytes,
                               .fetch = from_memory,
                               .source = (void *)(uintptr_t)bytes};
    cr_assert(zero(int, bp_pcap_write_message(stream, &message, to_buffer, out)));
}

static void open_stream(bp_pcap_stream *stream, bp_buffer *out, uint64_t wall_ns) {
    bp_buffer_init(out, 64u << 20);
    cr_assert(zero(int, bp_pcap_write_open(stream, wall_ns, to_buffer, out)));
}

Test(pcap, begins_with_the_nanosecond_magic_and_ethernet) {
    BUFFER(out, 1024);
    cr_assert(zero(int, bp_pcap_write_header(to_buffer, &out)));
    static const unsigned char expected[BP_PCAP_HEADER_BYTES] = {
        0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0};
    cr_assert(eq(sz, out.size, sizeof expected));
    cr_assert(zero(int, memcmp(out.data, expected, sizeof expected)));
}

static void check_handshake(bool host_is_server) {
    bp_pcap_stream stream = {
        .host_is_server = host_is_server, .host_port = 1000, .peer_port = 2000, .number = 7};
    CLEANUP(bp_buffer_release) bp_buffer out;
    open_stream(&stream, &out, 5000000001u);
    static const unsigned flags[] = {0x02, 0x12, 0x10};
    size_t offset = 0;
    parsed frame;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(next_frame(&out, &offset, &frame));
        bool from_host = (i == 1) == host_is_server;
        cr_expect(eq(u32, frame.flags, flags[i]));
        cr_expect(eq(u32, be16(frame.tcp), from_host ? 1000 : 2000));
        cr_expect(eq(u32, be32(frame.ip + 12), from_host ? 0x0a000701u : 0x0a000702u));
        cr_expect(eq(u32, be32(frame.ip + 16), from_host ? 0x0a000702u : 0x0a000701u));
        cr_expect(eq(u32, frame.seconds, 5));
        cr_expect(eq(u32, frame.nanoseconds, 1));
        cr_expect(eq(u32, sum_of(0, frame.ip, 20), 0xffff));
        cr_expect(eq(u32, tcp_sum(&frame), 0xffff));
    }
    cr_assert(eq(sz, offset, out.size));
    cr_assert(eq(u32, frame.sequence, 1));
    cr_assert(eq(u32, frame.acknowledgement, 1));
}

Test(pcap, lets_the_client_open_the_connection) {
    check_handshake(false);
    check_handshake(true);
}

static void check_lengths(size_t byte_count, size_t frame_count) {
    unsigned char *bytes = malloc(byte_count + 1);
    for (size_t i = 0; i < byte_count; i++) {
        bytes[i] = (unsigned char)(i * 7 + i / 251);
    }
    bp_pcap_stream stream = {.next_sequence = {100, 200}};
    CLEANUP(bp_buffer_release) bp_buffer out;
    open_stream(&stream, &out, 0);
    size_t offset = out.size, seen = 0, frames = 0;
    write_message(&stream, &out, BUGPACK_RECEIVED, 0, bytes, byte_count, byte_count);
    parsed frame;
    while (next_frame(&out, &offset, &frame)) {
        frames++;
        cr_assert(eq(u32, frame.sequence, 201 + (uint32_t)seen));
        cr_assert(eq(u32, frame.acknowledgement, 101));
        cr_assert(le(sz, frame.payload_real, BP_PCAP_SEGMENT_BYTES));
        cr_assert(eq(sz, frame.payload_captured, frame.payload_real));
        cr_assert(zero(int, memcmp(frame.payload, bytes + seen, frame.payload_real)));
        cr_assert(eq(u32, tcp_sum(&frame), 0xffff));
        seen += frame.payload_real;
        cr_assert(eq(u32, frame.flags, seen == byte_count ? 0x18 : 0x10));
    }
    cr_assert(eq(sz, seen, byte_count));
    cr_assert(eq(sz, frames, frame_count));
    free(bytes);
}

Test(pcap, cuts_messages_into_segments_with_right_checksums) {
    check_lengths(0, 1);
    check_lengths(1, 1);
    check_lengths(7, 1);
    check_lengths(65000, 1);
    check_lengths(65001, 2);
    check_lengths(65535, 2);
    check_lengths(65537, 2);
    check_lengths(200 * 1024, 4);
}

Test(pcap, acknowledges_what_the_other_side_has_sent) {
    bp_pcap_stream stream = {.next_sequence = {0, 0xfffffff0u}};
    CLEANUP(bp_buffer_release) bp_buffer out;
    open_stream(&stream, &out, 0);
    size_t offset = out.size;
    write_message(&stream, &out, BUGPACK_RECEIVED, 0, "0123456789abcdefghij", 20, 20);
    write_message(&stream, &out, BUGPACK_SENT, 0, "xyz", 3, 3);
    write_message(&stream, &out, BUGPACK_RECEIVED, 0, "!", 1, 1);
    parsed frame;
    cr_assert(next_frame(&out, &offset, &frame));
    cr_assert(eq(u32, frame.sequence, 0xfffffff1u));
    cr_assert(next_frame(&out, &offset, &frame));
    cr_assert(eq(u32, frame.sequence, 1));
    cr_assert(eq(u32, frame.acknowledgement, 5)); /* over the top of 32 bits */
    cr_assert(next_frame(&out, &offset, &frame));
    cr_assert(eq(u32, frame.sequence, 5));
    cr_assert(eq(u32, frame.acknowledgement, 4));
}

Test(pcap, shows_what_was_not_kept_as_frames_that_a_snap_length_cut) {
    bp_pcap_stream stream = {0};
    CLEANUP(bp_buffer_release) bp_buffer out;
    open_stream(&stream, &out, 0);
    size_t offset = out.size;
    write_message(&stream, &out, BUGPACK_SENT, 0, "kept", 4, 130001);
    static const size_t real[] = {65000, 65000, 1};
    static const size_t captured[] = {4, 0, 0};
    uint32_t sequence = 1;
    parsed frame;
    for (size_t i = 0; i < 3; i++) {
        cr_assert(next_frame(&out, &offset, &frame));
        cr_expect(eq(u32, frame.sequence, sequence));
        cr_expect(eq(sz, frame.payload_real, real[i]));
        cr_expect(eq(sz, frame.payload_captured, captured[i]));
        cr_expect(eq(u32, be16(frame.ip + 2), (uint32_t)(40 + real[i])));
        cr_expect(eq(u32, frame.flags, i == 2 ? 0x18 : 0x10));
        sequence += (uint32_t)real[i];
    }
    cr_assert(eq(sz, offset, out.size));
}

Test(pcap, bounds_the_frames_of_a_length_that_cannot_be_true) {
    bp_pcap_stream stream = {0};
    CLEANUP(bp_buffer_release) bp_buffer out;
    open_stream(&stream, &out, 0);
    write_message(&stream, &out, BUGPACK_SENT, 0, "x", 1, UINT64_MAX);
    cr_assert(eq(u32, stream.next_sequence[0], 1 + (uint32_t)BP_PCAP_MESSAGE_MAX_BYTES));
    cr_assert(lt(sz, out.size, 1 << 20));
}

Test(pcap, never_leaves_more_than_a_window_unacknowledged) {
    bp_pcap_stream stream = {0};
    CLEANUP(bp_buffer_release) bp_buffer out;
    open_stream(&stream, &out, 0);
    size_t offset = out.size;
    for (int i = 0; i < 20; i++) {
        write_message(&stream, &out, BUGPACK_SENT, 0, "x", 1, BP_PCAP_MESSAGE_MAX_BYTES);
    }
    uint32_t acknowledged = 1, in_flight_max = 0;
    parsed frame;
    while (next_frame(&out, &offset, &frame)) {
        if (be32(frame.ip + 12) == 0x0a000002u) {
            acknowledged = frame.acknowledgement;
        } else {
            uint32_t in_flight = frame.sequence + (uint32_t)frame.payload_real - acknowledged;
            in_flight_max = in_flight > in_flight_max ? in_flight : in_flight_max;
        }
    }
    cr_assert(lt(u32, in_flight_max, 65535u << 14));
    cr_assert(gt(u32, in_flight_max, 1u << 28));
}

static bugpack_status full(void *context, const void *bytes, size_t byte_count) {
    size_t *left = context;
    if (byte_count > *left) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    *left -= byte_count;
    return BUGPACK_OK;
}

Test(pcap, reports_what_the_sink_and_the_fetch_report) {
    bp_pcap_stream stream = {0};
    size_t left = 100;
    cr_assert(eq(int, bp_pcap_write_open(&stream, 0, full, &left), BUGPACK_ERR_NO_MEMORY));
    cr_assert(not(stream.is_open));
    bp_pcap_message message = {.byte_count = 1, .original_bytes = 1, .fetch = from_nowhere};
    left = 1000;
    cr_assert(eq(int, bp_pcap_write_message(&stream, &message, full, &left), BUGPACK_ERR_IO));
}
