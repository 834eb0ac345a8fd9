#include "pcap_recording.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "redact/redactor.h"
#include "support/check.h"

const char *directory;

FILE *create(const char *name, const char *ending) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s%s", directory, name, ending);
    FILE *file = fopen(path, "wb");
    CHECK(file != NULL);
    return file;
}

recorded record(const char *name, unsigned number, size_t ring_bytes,
                const bugpack_channel_options *options) {
    recorded channel = {.traffic = NULL};
    bp_traffic_identity identity;
    char ending[32];
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    CHECK(bp_ring_new(ring_bytes, &ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_traffic_pins_ring_bytes(options->pin_bytes), &pins, NULL) == BUGPACK_OK);
    bp_traffic_identity_init(&identity, name, number, options);
    CHECK(bp_traffic_new(&identity, options, NULL, ring, pins, &channel.traffic, NULL) ==
          BUGPACK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(ending, sizeof ending, ".%u.%s", number, i == 0 ? "sent" : "received");
        channel.expected[i] = create(name, ending);
    }
    return channel;
}

void add(recorded *channel, bugpack_direction direction, const void *bytes, size_t byte_count) {
    bp_traffic_append(channel->traffic, direction, 7, "message", bytes, byte_count);
    CHECK(fwrite(bytes, 1, byte_count, channel->expected[direction]) == byte_count);
}

void add_text(recorded *channel, bugpack_direction direction, const char *text) {
    add(channel, direction, text, strlen(text));
}

unsigned char *bytes_of(size_t byte_count, uint32_t seed) {
    unsigned char *bytes = malloc(byte_count + 1);
    CHECK(bytes != NULL);
    for (size_t i = 0; i < byte_count; i++) {
        seed = seed * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(seed >> 24);
    }
    return bytes;
}

static void copy_out(const bp_temp_file *temp_file, FILE *file) {
    static char bytes[65536];
    int64_t got;
    for (uint64_t offset = 0; offset < temp_file->size; offset += (uint64_t)got) {
        got = bp_temp_file_read(temp_file, offset, bytes, sizeof bytes);
        CHECK(got > 0 && fwrite(bytes, 1, (size_t)got, file) == (size_t)got);
    }
    CHECK(fclose(file) == 0);
}

bp_traffic_extent finish(const char *name, recorded *channels, size_t channel_count) {
    bp_traffic_snapshot frozen[4];
    bp_traffic_extent extent;
    bp_temp_file records, out, index;
    int dir_fd = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    uint64_t offset_ns = bp_clock_wall_ns() - bp_clock_monotonic_ns();
    CHECK(dir_fd >= 0);
    CHECK(bp_temp_file_open(&records, dir_fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    for (size_t i = 0; i < channel_count; i++) {
        CHECK(bp_traffic_take_snapshot(channels[i].traffic, UINT64_MAX, offset_ns, &records,
                                       &frozen[i], NULL) == BUGPACK_OK);
        CHECK(fclose(channels[i].expected[0]) == 0 && fclose(channels[i].expected[1]) == 0);
        bp_traffic_free(channels[i].traffic);
    }
    bp_rule_set *set = NULL;
    CHECK(bp_rule_set_of_texts("rules", NULL, 0, &set, NULL) == BUGPACK_OK);
    bp_redactor *redactor = bp_redactor_new(set);
    CHECK(redactor != NULL);
    CHECK(bp_temp_file_open(&out, dir_fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_open(&index, dir_fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_print_pcap(&records, frozen, channel_count, redactor, bp_temp_file_sink, &out,
                                &extent, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_print_index(&records, frozen, channel_count, bp_temp_file_sink, &index,
                                 NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_flush(&out, NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_flush(&index, NULL) == BUGPACK_OK);
    copy_out(&index, create(name, ".index.jsonl"));
    copy_out(&out, create(name, ".pcap"));
    bp_temp_file_release(&records);
    bp_redactor_free(redactor);
    bp_rule_set_drop(set);
    bp_temp_file_release(&out);
    bp_temp_file_release(&index);
    CHECK(close(dir_fd) == 0);
    FILE *told = create(name, ".extent");
    (void)fprintf(told, "messages=%llu pinned=%llu missing=%llu cut=%llu\nfrom=%llu\nto=%llu\n",
                  (unsigned long long)extent.message_count, (unsigned long long)extent.pinned_count,
                  (unsigned long long)extent.missing_count, (unsigned long long)extent.cut_count,
                  (unsigned long long)extent.from_wall_ns, (unsigned long long)extent.to_wall_ns);
    CHECK(fclose(told) == 0);
    return extent;
}
