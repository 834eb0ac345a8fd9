/*
 * The same appends as a tracepoint of lttng-ust, whose session tests/bench/ring has started. Prints
 * one row of the table of appends or, when it is called with "log" or "threads", of that of log
 * calls or of many threads.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "bench_ring_lttng.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "append_threads.h"

enum { repeat_count = 15 };

static unsigned char message[16384];

static void trace(size_t byte_count) {
    lttng_ust_tracepoint(bugpack_bench, message, message, byte_count);
}

static void trace_in_thread(void *unused, size_t byte_count) {
    (void)unused;
    trace(byte_count);
}

/* The text of bench_log.c; lttng_ust_tracef would allocate the text. */
static void trace_formatted(size_t byte_count) {
    char line[256];
    int length =
        snprintf(line, sizeof line, "cache miss for image %u, tile %d of 40 at %04d,%04d: %s",
                 123456u, 17, 640, 480, "refetch");
    (void)byte_count;
    lttng_ust_tracepoint(bugpack_bench, message, (unsigned char *)line, (size_t)length);
}

/* In no session, so that it is off. */
static void trace_nothing(size_t byte_count) {
    lttng_ust_tracepoint(bugpack_bench, off, message, byte_count);
}

static void print_column(void (*record)(size_t), size_t byte_count, unsigned count) {
    double ns[repeat_count + 1];
    for (int repeat = 0; repeat <= repeat_count; repeat++) {
        uint64_t began_ns = read_ns(CLOCK_MONOTONIC);
        for (unsigned j = 0; j < count; j++) {
            record(byte_count);
        }
        ns[repeat] = (double)(read_ns(CLOCK_MONOTONIC) - began_ns) / count;
    }
    qsort(ns + 1, repeat_count, sizeof ns[0], compare_doubles); /* the first only fills it */
    printf(" %.0f (%.0f) |", ns[1 + repeat_count / 2], ns[1]);
}

int main(int argument_count, char **arguments) {
    static const size_t sizes[] = {64, 1024, 16384};
    memset(message, 0x5a, sizeof message);
    if (!lttng_ust_tracepoint_enabled(bugpack_bench, message)) {
        (void)fprintf(stderr, "bench_ring_lttng: no session records this tracepoint\n");
        return 1;
    }
    if (argument_count > 1 && strcmp(arguments[1], "threads") == 0) {
        print_threads("lttng-ust, overwrite mode", trace_in_thread, NULL);
        return 0;
    }
    printf("| lttng-ust, overwrite mode |");
    if (argument_count > 1 && strcmp(arguments[1], "log") == 0) {
        print_column(trace, 64, 300000);
        print_column(trace_formatted, 64, 300000);
        print_column(trace_nothing, 64, 300000);
    } else {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            print_column(trace, sizes[i], (unsigned)((64u << 20) / (sizes[i] + 128)));
        }
    }
    printf("\n");
    return 0;
}
