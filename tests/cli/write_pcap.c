/*
 * Records traffic and writes it to DIR/NAME.pcap, and what was recorded of stream N to
 * DIR/NAME.N.sent and DIR/NAME.N.received, for pcap.sh to look at with tshark.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "recorder/traffic.h"
#include "support/check.h"

typedef struct recorded {
    bp_traffic *traffic;
    FILE *expected[2]; /* by direction; NULL: not compared */
} recorded;

static const char *directory;

static FILE *create(const char *name, const char *ending) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s%s", directory, name, ending);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    return file;
}

static recorded record(const char *name, unsigned number, size_t ring_bytes,
                       const bugpack_channel_options *options) {
    recorded channel = {0};
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    char ending[32];
    bp_traffic_identity_init(&identity, name, number, options);
    CHECK(bp_ring_new(ring_bytes, &ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_traffic_pins_ring_bytes(options->pin_bytes), &pins, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_new(&identity, options, ring, pins, &channel.traffic, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(ending, sizeof ending, ".%u.%s", number, i == 0 ? "sent" : "received");
        channel.expected[i] = create(name, ending);
    }
    return channel;
}

static void add(recorded *channel, bugpack_direction direction, const void *bytes,
                size_t byte_count) {
    bp_traffic_append(channel->traffic, direction, 0, "message", bytes, byte_count);
    CHECK(fwrite(bytes, 1, byte_count, channel->expected[direction]) == byte_count);
}

static void add_text(recorded *channel, bugpack_direction direction, const char *text) {
    add(channel, direction, text, strlen(text));
}

static unsigned char *bytes_of(size_t byte_count, uint32_t seed) {
    unsigned char *bytes = malloc(byte_count + 1);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < byte_count; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
    }
    return bytes;
}

static void copy_out(const bp_spool *spool, FILE *file) {
    static char bytes[65536];
    int64_t got;
    for (uint64_t offset = 0; offset < spool->size; offset += (uint64_t)got) {
        got = bp_spool_read(spool, offset, bytes, sizeof bytes);
        CHECK(got > 0 && fwrite(bytes, 1, (size_t)got, file) == (size_t)got);
    }
    CHECK(fclose(file) == 0);
}

static bp_traffic_extent finish(const char *name, recorded *channels, size_t channel_count) {
    bp_traffic_frozen frozen[4];
    bp_traffic_extent extent;
    bp_spool out;
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t offset_ns = bp_clock_wall_ns() - bp_clock_monotonic_ns();
    CHECK(dir_fd >= 0);
    for (size_t i = 0; i < channel_count; i++) {
        CHECK(bp_traffic_freeze(channels[i].traffic, UINT64_MAX, offset_ns, dir_fd, &frozen[i],
                                NULL) == BUGPACK_OK);
        CHECK(fclose(channels[i].expected[0]) == 0 && fclose(channels[i].expected[1]) == 0);
        bp_traffic_free(channels[i].traffic);
    }
    CHECK(bp_spool_open(&out, dir_fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_print_pcap(frozen, channel_count, &out, NULL, &extent, NULL) == BUGPACK_OK);
    copy_out(&out, create(name, ".pcap"));
    for (size_t i = 0; i < channel_count; i++) {
        bp_traffic_frozen_release(&frozen[i]);
    }
    bp_spool_release(&out);
    CHECK(close(dir_fd) == 0);
    FILE *told = create(name, ".extent");
    (void)fprintf(told, "messages=%llu pinned=%llu missing=%llu cut=%llu\nfrom=%llu\nto=%llu\n",
                  (unsigned long long)extent.message_count, (unsigned long long)extent.pinned_count,
                  (unsigned long long)extent.missing_count, (unsigned long long)extent.cut_count,
                  (unsigned long long)extent.from_wall_ns, (unsigned long long)extent.to_wall_ns);
    CHECK(fclose(told) == 0);
    return extent;
}

/* Messages of all lengths that are at an edge, both ways, over IPv4 and IPv6, in turns. */
static void write_lengths(void) {
    static const size_t lengths[] = {0,          1,      0,     0,     2,     3,
                                     64999,      65000,  65001, 65535, 65536, 65537,
                                     200 * 1024, 130000, 0,     1,     17,    100000};
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    recorded channels[2];
    for (unsigned i = 0; i < 2; i++) {
        options.is_ipv6 = options.host_is_server = i == 1;
        channels[i] = record("lengths", i, 16u << 20, &options);
    }
    for (size_t i = 0; i < 2 * sizeof lengths / sizeof lengths[0]; i++) {
        for (unsigned j = 0; j < 4; j++) {
            size_t length = lengths[(i + j * 5) % (sizeof lengths / sizeof lengths[0])];
            unsigned char *bytes = bytes_of(length, (uint32_t)(i * 4 + j));
            add(&channels[j % 2], (bugpack_direction)(j / 2), bytes, length);
            free(bytes);
        }
    }
    (void)finish("lengths", channels, 2);
}

static void write_http(void) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.peer_port = 80;
    recorded channel = record("http", 0, 4u << 20, &options);
    add_text(&channel, BUGPACK_SENT, "GET /large HTTP/1.1\r\nHost: example.org\r\n\r\n");
    add_text(&channel, BUGPACK_RECEIVED,
             "HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\n"
             "Content-Length: 300000\r\n\r\n");
    unsigned char *body = bytes_of(300000, 1);
    add(&channel, BUGPACK_RECEIVED, body, 40000);
    add(&channel, BUGPACK_RECEIVED, body + 40000, 260000);
    free(body);
    (void)finish("http", &channel, 1);
}

static void write_redis(void) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.peer_port = 6379;
    recorded channel = record("redis", 0, 1u << 20, &options);
    for (int i = 0; i < 100; i++) {
        add_text(&channel, BUGPACK_SENT, "*2\r\n$4\r\nECHO\r\n$5\r\nhello\r\n");
        add_text(&channel, BUGPACK_RECEIVED, "$5\r\nhello\r\n");
    }
    (void)finish("redis", &channel, 1);
}

/* A ring far smaller than what went through it. Without the opening, no dissector would know. */
static void write_websocket(void) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.host_is_server = true;
    options.host_port = 80;
    options.pin_bytes = 300;
    recorded channel = record("websocket", 0, 64u << 10, &options);
    add_text(
        &channel, BUGPACK_RECEIVED,
        "GET /chat HTTP/1.1\r\nHost: example.org\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n");
    add_text(&channel, BUGPACK_SENT,
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n");
    for (unsigned i = 0; i < 20000; i++) {
        char frame[32];
        int length = snprintf(frame, sizeof frame, "\x81%c%06u", 6, i);
        add(&channel, BUGPACK_SENT, frame, (size_t)length);
    }
    (void)finish("websocket", &channel, 1);
}

/* What was not kept: by snap length, and by the largest message that there is. */
static void write_snapped(void) {
    static const size_t lengths[] = {50, 1500, 100, 101, 200 * 1024, 65000, 65100, 3};
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    recorded channels[2];
    channels[1] = record("snapped", 1, 80u << 20, &options);
    options.snap_bytes = 100;
    channels[0] = record("snapped", 0, 1u << 20, &options);
    for (unsigned i = 0; i < 32; i++) {
        size_t length = lengths[i / 2 % 8];
        unsigned char *bytes = bytes_of(length, i);
        add(&channels[0], (bugpack_direction)(i % 2), bytes, length);
        free(bytes);
    }
    size_t large = (16u << 20) + 100000;
    unsigned char *bytes = bytes_of(large, 99);
    add(&channels[1], BUGPACK_SENT, bytes, large);
    add(&channels[1], BUGPACK_RECEIVED, bytes, 16u << 20);
    add(&channels[1], BUGPACK_SENT, bytes, 10);
    free(bytes);
    (void)finish("snapped", channels, 2);
}

static const void *from_memory(void *source, uint64_t offset, size_t byte_count) {
    (void)byte_count;
    return (const unsigned char *)source + offset;
}

static bugpack_status to_file(void *file, const void *bytes, size_t byte_count) {
    return fwrite(bytes, 1, byte_count, file) == byte_count ? BUGPACK_OK : BUGPACK_ERR_IO;
}

/* Sequence numbers that go over the top of 32 bits in both directions. */
static void write_wrap(void) {
    bp_pcap_stream stream = {.host_port = 50000,
                             .peer_port = 50001,
                             .number = 0,
                             .next_sequence = {0xffffff00u, 0xfffff000u}};
    FILE *file = create("wrap", ".pcap");
    FILE *expected[2] = {create("wrap", ".0.sent"), create("wrap", ".0.received")};
    CHECK(bp_pcap_write_header(to_file, file) == BUGPACK_OK);
    CHECK(bp_pcap_write_open(&stream, BP_NS_PER_SEC, to_file, file) == BUGPACK_OK);
    unsigned char *bytes = bytes_of(70000, 5);
    for (unsigned i = 0; i < 40; i++) {
        size_t length = i % 7 == 6 ? 70000 : 300;
        bp_pcap_message message = {.direction = i % 2,
                                   .wall_ns = BP_NS_PER_SEC + i,
                                   .byte_count = length,
                                   .original_bytes = length,
                                   .fetch = from_memory,
                                   .source = bytes};
        CHECK(bp_pcap_write_message(&stream, &message, to_file, file) == BUGPACK_OK);
        CHECK(fwrite(bytes, 1, length, expected[i % 2]) == length);
    }
    free(bytes);
    CHECK(fclose(expected[0]) == 0 && fclose(expected[1]) == 0 && fclose(file) == 0);
}

int main(int argument_count, char **arguments) {
    CHECK(argument_count == 2);
    directory = arguments[1];
    write_lengths();
    write_http();
    write_redis();
    write_websocket();
    write_snapped();
    write_wrap();
    return 0;
}
