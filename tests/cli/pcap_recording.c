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

/* The files of the rings, for recovery. */
static struct {
    const bp_ring *ring;
    int fd;
} ring_files[64];
static size_t ring_file_count;

static int fd_of(const bp_ring *ring) {
    size_t i = ring_file_count; /* the newest: a ring may lie where an earlier one was freed */
    while (i > 0 && ring_files[i - 1].ring != ring) {
        i--;
    }
    CHECK(i > 0);
    return ring_files[i - 1].fd;
}

static bp_ring *new_ring(size_t ring_bytes, bool is_in_file) {
    bp_ring *ring = NULL;
    if (!is_in_file) {
        CHECK(bp_ring_new(ring_bytes, &ring, NULL) == BUGPACK_OK);
        return ring;
    }
    char path[512];
    (void)snprintf(path, sizeof path, "%s/ring", directory);
    int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(fd >= 0 && unlink(path) == 0);
    CHECK(bp_ring_new_mapped(fd, ring_bytes, &ring, NULL) == BUGPACK_OK);
    CHECK(ring_file_count < sizeof ring_files / sizeof ring_files[0]);
    ring_files[ring_file_count].ring = ring;
    ring_files[ring_file_count++].fd = fd;
    return ring;
}

recorded record_in(bool is_in_files, const char *name, unsigned number, size_t ring_bytes,
                   const bugpack_channel_options *options) {
    recorded channel = {.is_in_files = is_in_files};
    bp_traffic_identity identity;
    char ending[32];
    bp_ring *ring = new_ring(ring_bytes, is_in_files);
    bp_ring *pins = new_ring(bp_traffic_pins_ring_bytes(options->pin_bytes), is_in_files);
    bp_traffic_identity_init(&identity, name, number, options);
    CHECK(bp_traffic_new(&identity, options, NULL, ring, pins, &channel.traffic, NULL) ==
          BUGPACK_OK);
    for (unsigned i = 0; i < 2; i++) {
        (void)snprintf(ending, sizeof ending, ".%u.%s", number, i == 0 ? "sent" : "received");
        channel.expected[i] = create(name, ending);
    }
    return channel;
}

recorded record(const char *name, unsigned number, size_t ring_bytes,
                const bugpack_channel_options *options) {
    return record_in(false, name, number, ring_bytes, options);
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

/* What a recoverer would have of the channel's files. */
static void salvage(const bp_traffic *traffic, uint64_t offset_ns, bp_temp_file *records,
                    bp_traffic_snapshot *ret_snapshot) {
    bp_traffic_snapshot frozen = {.identity = *bp_traffic_identity_of(traffic),
                                  .wall_offset_ns = offset_ns};
    frozen.messages.from = records->size;
    CHECK(bp_ring_recover(fd_of(bp_traffic_ring(traffic)), bp_temp_file_sink, records,
                          &frozen.messages_view, NULL) == BUGPACK_OK);
    frozen.messages.to = frozen.pins.from = records->size;
    CHECK(bp_ring_recover(fd_of(bp_traffic_pins(traffic)), bp_temp_file_sink, records,
                          &frozen.pins_view, NULL) == BUGPACK_OK);
    frozen.pins.to = records->size;
    CHECK(frozen.messages_view.damaged_bytes == 0 && frozen.pins_view.damaged_bytes == 0);
    *ret_snapshot = frozen;
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
        if (channels[i].is_in_files) {
            salvage(channels[i].traffic, offset_ns, &records, &frozen[i]);
        } else {
            CHECK(bp_traffic_take_snapshot(channels[i].traffic, UINT64_MAX, offset_ns, &records,
                                           &frozen[i], NULL) == BUGPACK_OK);
        }
        CHECK(fclose(channels[i].expected[0]) == 0 && fclose(channels[i].expected[1]) == 0);
        bp_traffic_free(channels[i].traffic);
    }
    bp_rule_list rules = {.rules = NULL};
    bp_rule_set *set = NULL;
    CHECK(bp_rule_list_add_builtin(&rules, NULL, NULL, NULL) == BUGPACK_OK);
    CHECK(bp_rule_set_new(&rules, &set, NULL) == BUGPACK_OK);
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
