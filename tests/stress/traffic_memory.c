/*
 * 40 MiB of traffic become a pcap in less than 4 MiB of memory beside the rings.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "recorder/traffic.h"
#include "support/check.h"
#include "support/temp_dir.h"

static const size_t ring_bytes = (size_t)10 << 20;
static const long allowed_kb = 4096;

/* The most memory that this process has ever had resident; -1 where there is no such line. */
static long peak_kb(void) {
    char line[256];
    long peak = -1;
    FILE *file = fopen("/proc/self/status", "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        if (strncmp(line, "VmHWM:", 6) == 0) {
            peak = strtol(line + 6, NULL, 10);
        }
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return peak;
}

static bp_traffic *open_channel(uint32_t number) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic *traffic = NULL;
    bp_traffic_identity_init(&identity, "channel", number, &options);
    CHECK(bp_ring_new(ring_bytes, &ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_traffic_pins_ring_bytes(options.pin_bytes), &pins, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_new(&identity, &options, NULL, ring, pins, &traffic, NULL) == BUGPACK_OK);
    return traffic;
}

static void fill(bp_traffic *const channels[4]) {
    static const size_t lengths[] = {16, 64, 1000, 16000, 70000, 100, 1 << 20};
    char *bytes = calloc(1, 1 << 20);
    CHECK(bytes != NULL);
    /* More than fits, so that all of each ring is in use. */
    for (size_t sent = 0, i = 0; sent < 6 * ring_bytes; i++) {
        size_t length = lengths[i % (sizeof lengths / sizeof lengths[0])];
        bp_traffic_append(channels[i % 4], (bugpack_direction)(i / 4 % 2), 0, "", bytes, length);
        sent += length;
    }
    free(bytes);
}

int main(void) {
    bp_traffic *channels[4];
    bp_traffic_snapshot frozen[4];
    temp_dir dir;
    bp_temp_file records, out;
    bp_traffic_extent extent;
    for (uint32_t i = 0; i < 4; i++) {
        channels[i] = open_channel(i);
    }
    fill(channels);
    CHECK(temp_dir_make(&dir));
    long before_kb = peak_kb();
    CHECK(bp_temp_file_open(&records, dir.fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    for (size_t i = 0; i < 4; i++) {
        CHECK(bp_traffic_take_snapshot(channels[i], UINT64_MAX, 0, &records, &frozen[i], NULL) ==
              BUGPACK_OK);
    }
    CHECK(bp_temp_file_open(&out, dir.fd, (uint64_t)1 << 30, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_print_pcap(&records, frozen, 4, NULL, bp_temp_file_sink, &out, &extent,
                                NULL) == BUGPACK_OK);
    long after_kb = peak_kb();
    printf("%llu messages, %llu bytes of pcap, %ld KiB more than before\n",
           (unsigned long long)extent.message_count, (unsigned long long)out.size,
           after_kb - before_kb);
    CHECK(out.size > 3 * ring_bytes);
    bp_temp_file_release(&out);
    bp_temp_file_release(&records);
    for (size_t i = 0; i < 4; i++) {
        bp_traffic_free(channels[i]);
    }
    temp_dir_remove(&dir);
    if (before_kb < 0) {
        SKIP("this system does not tell what memory was resident at most");
    }
    CHECK(after_kb - before_kb < allowed_kb);
    return 0;
}
