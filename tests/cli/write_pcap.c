/*
 * Writes the pcaps that pcap.sh looks at with tshark, into the directory that is named.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pcap_recording.h"
#include "support/check.h"

/* Messages of all lengths that are at an edge, both ways, of a client and of a server, in turns. */
static void write_lengths(void) {
    static const size_t lengths[] = {0,          1,      0,     0,     2,     3,
                                     64999,      65000,  65001, 65535, 65536, 65537,
                                     200 * 1024, 130000, 0,     1,     17,    100000};
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    recorded channels[2];
    for (unsigned i = 0; i < 2; i++) {
        options.host_is_server = i == 1;
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

/* Queries and answers over TCP, each behind its length (RFC 1035, 4.2.2). */
static void write_dns(void) {
    static const unsigned char query[] = "\0\x1d\x12\x34\x01\0\0\x01\0\0\0\0\0\0"
                                         "\x07"
                                         "example"
                                         "\x03"
                                         "org"
                                         "\0\0\x01\0\x01";
    static const unsigned char answer[] =
        "\0\x2d\x12\x34\x81\x80\0\x01\0\x01\0\0\0\0"
        "\x07"
        "example"
        "\x03"
        "org"
        "\0\0\x01\0\x01"
        "\xc0\x0c\0\x01\0\x01\0\0\x0e\x10\0\x04\xc0\0\x02\x07"; /* 192.0.2.7 */
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    options.peer_port = 53;
    recorded channel = record("dns", 0, 1u << 20, &options);
    for (int i = 0; i < 50; i++) {
        add(&channel, BUGPACK_SENT, query, sizeof query - 1);
        add(&channel, BUGPACK_RECEIVED, answer, sizeof answer - 1);
    }
    (void)finish("dns", &channel, 1);
}

static void write_http(void) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
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
    options.pin_bytes = 4096;
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
    options.pin_bytes = 4096;
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

/* Without its secret, in a stream whose other lengths depend on its own; and without payload. */
static void write_redacted(void) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    options.peer_port = 80;
    recorded channels[2];
    channels[0] = record("redacted", 0, 1u << 20, &options);
    options.payload = BUGPACK_PAYLOAD_NONE;
    channels[1] = record("redacted", 1, 1u << 20, &options);
    for (unsigned i = 0; i < 20; i++) {
        char *large = calloc(1, 70000);
        CHECK(large != NULL);
        int length = snprintf(large, 70000,
                              "POST /login HTTP/1.1\r\nHost: example.org\r\nAuthorization: Bearer "
                              "5ecre70123456789abcdef%04u\r\nContent-Length: %d\r\n\r\n",
                              i, i == 0 ? 69000 : 27);
        memset(large + length, '&', 69000);
        char *secret = large + (i == 0 ? 64985 : length);
        memcpy(secret, "password=5ecre7hunter25ecre", 27);
        add(&channels[0], BUGPACK_SENT, large, (size_t)length + (i == 0 ? 69000 : 27));
        add(&channels[1], BUGPACK_SENT, large, (size_t)length);
        free(large);
        add_text(&channels[0], BUGPACK_RECEIVED, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    }
    (void)finish("redacted", channels, 2);
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
    write_dns();
    write_redis();
    write_websocket();
    write_snapped();
    write_redacted();
    write_wrap();
    return 0;
}
