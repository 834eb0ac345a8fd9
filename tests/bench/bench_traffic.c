/*
 * What recording a message costs the host: nanoseconds per call, over 32 MiB rings in memory; how
 * two threads on two channels get on; and, as a row of a Markdown table, many threads on one.
 *
 *   bench_traffic [MESSAGES]
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/append_threads.h"
#include "recorder/traffic.h"
#include "support/check.h"

enum { round_count = 5 };

typedef struct lane {
    bp_traffic *traffic;
    size_t byte_count, message_count;
    double best_ns, best_cpu_ns;
} lane;

static pthread_barrier_t barrier;

static bp_traffic *open_channel(uint32_t number) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.pin_bytes = 4096;
    bp_traffic_identity identity;
    bp_ring *ring = NULL;
    bp_ring *pins = NULL;
    bp_traffic *traffic = NULL;
    bp_traffic_identity_init(&identity, "bench", number, &options);
    CHECK(bp_ring_new((size_t)32 << 20, &ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_share(ring, NULL) == BUGPACK_OK);
    CHECK(bp_ring_new(bp_traffic_pins_ring_bytes(options.pin_bytes), &pins, NULL) == BUGPACK_OK);
    CHECK(bp_traffic_new(&identity, &options, NULL, ring, pins, &traffic, NULL) == BUGPACK_OK);
    return traffic;
}

/* Each round begins together with the other thread's. */
static void *record(void *argument) {
    lane *own = argument;
    char *bytes = calloc(1, own->byte_count);
    CHECK(bytes != NULL);
    for (int round = 0; round < round_count; round++) {
        (void)pthread_barrier_wait(&barrier);
        uint64_t began_ns = bp_clock_monotonic_ns(), cpu_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
        for (size_t i = 0; i < own->message_count; i++) {
            bp_traffic_append(own->traffic, BUGPACK_SENT, 7, "draw_copy", bytes, own->byte_count);
        }
        double each_ns = (double)(bp_clock_monotonic_ns() - began_ns) / (double)own->message_count;
        double each_cpu_ns = (double)(read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns);
        each_cpu_ns /= (double)own->message_count;
        own->best_cpu_ns =
            round == 0 || each_cpu_ns < own->best_cpu_ns ? each_cpu_ns : own->best_cpu_ns;
        own->best_ns = round == 0 || each_ns < own->best_ns ? each_ns : own->best_ns;
    }
    free(bytes);
    return NULL;
}

/* `channel_count` channels with as many threads; the slower one is told. */
static void measure(size_t byte_count, size_t message_count, unsigned channel_count) {
    lane lanes[2];
    pthread_t threads[2];
    double slower_ns = 0, slower_cpu_ns = 0;
    CHECK(pthread_barrier_init(&barrier, NULL, channel_count) == 0);
    for (unsigned i = 0; i < channel_count; i++) {
        lanes[i] = (lane){open_channel(i), byte_count, message_count, 0, 0};
    }
    for (unsigned i = 0; i < channel_count; i++) {
        CHECK(pthread_create(&threads[i], NULL, record, &lanes[i]) == 0);
    }
    for (unsigned i = 0; i < channel_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        slower_ns = lanes[i].best_ns > slower_ns ? lanes[i].best_ns : slower_ns;
        slower_cpu_ns = lanes[i].best_cpu_ns > slower_cpu_ns ? lanes[i].best_cpu_ns : slower_cpu_ns;
        bp_traffic_free(lanes[i].traffic);
    }
    (void)pthread_barrier_destroy(&barrier);
    printf(
        "%zu bytes, %u thread%s: %.1f ns a message, %.1f of CPU time (best of %d rounds of %zu)\n",
        byte_count, channel_count, channel_count == 1 ? "" : "s on two channels, the slower one",
        slower_ns, slower_cpu_ns, round_count, message_count);
}

static void append_message(void *traffic, size_t byte_count) {
    static const char message[64];
    bp_traffic_append(traffic, BUGPACK_SENT, 7, "draw_copy", message, byte_count);
}

/* glibc locks cheaper while there is one thread alone, but no host has only one. */
static void *sleep_forever(void *unused) {
    while (pause() != 0) {}
    return unused;
}

int main(int argument_count, char **arguments) {
    size_t message_count = argument_count > 1 ? (size_t)strtoul(arguments[1], NULL, 10) : 1000000;
    pthread_t sleeper;
    CHECK(pthread_create(&sleeper, NULL, sleep_forever, NULL) == 0);
    for (unsigned channel_count = 1; channel_count <= 2; channel_count++) {
        measure(64, message_count, channel_count);
        measure(16 * 1024, message_count / 20 + 1, channel_count);
    }
    bp_traffic *traffic = open_channel(0);
    print_threads("64 bytes on one channel, 1 to 64 threads", append_message, traffic);
    bp_traffic_free(traffic);
    return 0;
}
