/*
 * The same appends as a tracepoint of lttng-ust, whose session tests/bench/ring has started. Prints
 * one row of the table.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_ring_lttng.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { repeat_count = 15 };

static uint64_t now_ns(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static int compare_doubles(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

int main(void) {
    static const size_t sizes[] = {64, 1024, 16384};
    static unsigned char message[16384];
    memset(message, 0x5a, sizeof message);
    if (!lttng_ust_tracepoint_enabled(bugpack_bench, message)) {
        (void)fprintf(stderr, "bench_ring_lttng: no session records this tracepoint\n");
        return 1;
    }
    printf("| lttng-ust, overwrite mode |");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        double ns[repeat_count + 1];
        unsigned count = (unsigned)((64u << 20) / (sizes[i] + 128));
        for (int repeat = 0; repeat <= repeat_count; repeat++) {
            uint64_t began_ns = now_ns();
            for (unsigned j = 0; j < count; j++) {
                lttng_ust_tracepoint(bugpack_bench, message, message, sizes[i]);
            }
            ns[repeat] = (double)(now_ns() - began_ns) / count;
        }
        qsort(ns + 1, repeat_count, sizeof ns[0], compare_doubles); /* the first only fills it */
        printf(" %.0f (%.0f) |", ns[1 + repeat_count / 2], ns[1]);
    }
    printf("\n");
    return 0;
}
