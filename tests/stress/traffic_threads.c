/*
 * Eight threads record on two channels while reports are made of them. Every pcap on the way is
 * whole and in order; the last one has each message once, and those of a thread in their order.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "recorder/traffic.h"
#include "support/check.h"
#include "support/temp_dir.h"
#include "support/traffic_pcap.h"

enum { writer_count = 8, message_count = 3000 };

typedef struct message {
    uint32_t writer, number;
    char filling[200]; /* some of it is sent */
} message;

typedef struct writer {
    bp_traffic *traffic;
    uint32_t number;
} writer;

static atomic_int running = writer_count;

static size_t leave_alone(bugpack_direction direction, uint32_t type, void *bytes,
                          size_t byte_count, void *context) {
    (void)direction;
    (void)type;
    (void)bytes;
    (void)context;
    return byte_count;
}

static void *record(void *argument) {
    const writer *self = argument;
    message sent = {.writer = self->number};
    for (sent.number = 0; sent.number < message_count; sent.number++) {
        bp_traffic_append(self->traffic, (bugpack_direction)(self->number / 2 % 2), sent.number,
                          "message", &sent, 8 + sent.number % sizeof sent.filling);
    }
    (void)atomic_fetch_sub(&running, 1);
    return NULL;
}

static bp_traffic *open_channel(uint32_t number) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic *traffic = NULL;
    options.filter = number == 1 ? leave_alone : NULL;
    bp_traffic_identity_init(&identity, "channel", number, &options);
    CHECK(bp_ring_new(8u << 20, &ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_traffic_pins_ring_bytes(options.pin_bytes), &pins, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_new(&identity, &options, NULL, ring, pins, &traffic, NULL) == BUGPACK_OK);
    return traffic;
}

static traffic_pcap print(bp_traffic *const channels[2], bp_traffic_extent *ret_extent) {
    bp_traffic_snapshot frozen[2];
    temp_dir dir;
    bp_temp_file records, out;
    traffic_pcap pcap;
    CHECK(temp_dir_make(&dir));
    CHECK(bp_temp_file_open(&records, dir.fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    for (size_t i = 0; i < 2; i++) {
        CHECK(bp_traffic_take_snapshot(channels[i], UINT64_MAX, 0, &records, &frozen[i], NULL) ==
              BUGPACK_OK);
    }
    CHECK(bp_temp_file_open(&out, dir.fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_print_pcap(&records, frozen, 2, NULL, bp_temp_file_sink, &out, ret_extent,
                                NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_flush(&out, NULL) == BUGPACK_OK);
    CHECK(traffic_pcap_read(&out, &pcap));
    bp_temp_file_release(&out);
    bp_temp_file_release(&records);
    temp_dir_remove(&dir);
    CHECK(traffic_pcap_is_in_order(&pcap));
    CHECK(traffic_pcap_is_gapless(&pcap));
    return pcap;
}

static void check_all_are_there(const traffic_pcap *pcap) {
    uint32_t next[writer_count] = {0};
    for (size_t i = 0; i < pcap->frame_count; i++) {
        const traffic_frame *frame = &pcap->frames[i];
        message got;
        if (frame->payload_real == 0) {
            continue;
        }
        CHECK(frame->payload_captured == frame->payload_real && frame->payload_real >= 8);
        memcpy(&got, pcap->bytes.data + frame->payload_offset, 8);
        CHECK(got.writer < writer_count && got.writer % 2 == frame->number);
        CHECK(got.number == next[got.writer]++);
    }
    for (size_t i = 0; i < writer_count; i++) {
        CHECK(next[i] == message_count);
    }
}

int main(void) {
    bp_traffic *channels[2] = {open_channel(0), open_channel(1)};
    pthread_t threads[writer_count];
    writer writers[writer_count];
    bp_traffic_extent extent;
    bp_traffic_totals totals;
    for (uint32_t i = 0; i < writer_count; i++) {
        writers[i] = (writer){.traffic = channels[i % 2], .number = i};
        CHECK(pthread_create(&threads[i], NULL, record, &writers[i]) == 0);
    }
    traffic_pcap pcap;
    do {
        bp_traffic_count(channels[0], &totals);
        pcap = print(channels, &extent);
        CHECK(extent.message_count >= totals.message_count[0] + totals.message_count[1]);
        CHECK(extent.missing_count == 0);
        traffic_pcap_release(&pcap);
    } while (atomic_load(&running) > 0);
    for (size_t i = 0; i < writer_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    pcap = print(channels, &extent);
    CHECK(extent.message_count == (uint64_t)writer_count * message_count);
    CHECK(extent.pinned_count == 0);
    check_all_are_there(&pcap);
    traffic_pcap_release(&pcap);
    bp_traffic_close(channels[0]);
    bp_traffic_append(channels[0], BUGPACK_SENT, 0, NULL, "late", 4);
    bp_traffic_free(channels[0]);
    bp_traffic_free(channels[1]);
    return 0;
}
