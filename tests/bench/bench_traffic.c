/*
 * What recording a message costs the host: nanoseconds per call, over a 32 MiB ring in memory.
 *
 *   bench_traffic [MESSAGES]
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "recorder/traffic.h"
#include "support/check.h"

static void measure(size_t byte_count, size_t message_count) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic *traffic = NULL;
    bp_traffic_identity_init(&identity, "bench", 0, &options);
    CHECK(bp_ring_new((size_t)32 << 20, &ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_traffic_pins_ring_bytes(options.pin_bytes), &pins, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_new(&identity, &options, ring, pins, &traffic, NULL) == BUGPACK_OK);
    char *bytes = calloc(1, byte_count);
    CHECK(bytes != NULL);
    double best_ns = 0;
    for (int round = 0; round < 5; round++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        for (size_t i = 0; i < message_count; i++) {
            bp_traffic_append(traffic, BUGPACK_SENT, 7, "draw_copy", bytes, byte_count);
        }
        double each_ns = (double)(bp_clock_monotonic_ns() - began_ns) / (double)message_count;
        best_ns = round == 0 || each_ns < best_ns ? each_ns : best_ns;
    }
    printf("%zu bytes: %.1f ns a message (best of 5 rounds of %zu)\n", byte_count, best_ns,
           message_count);
    free(bytes);
    bp_traffic_free(traffic);
}

int main(int argument_count, char **arguments) {
    size_t message_count = argument_count > 1 ? (size_t)strtoul(arguments[1], NULL, 10) : 1000000;
    measure(64, message_count);
    measure(16 * 1024, message_count / 20 + 1);
    return 0;
}
