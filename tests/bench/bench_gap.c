/*
 * What a gap costs the host's thread that meets it: a repeated key (CPU time), alone and on eight
 * threads; the first sight, which makes a report; and a sight that comes while a storm of new gaps
 * is reported.
 *
 *   bench_gap     prints a Markdown table
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { repeat_count = 2000000, round_count = 5, thread_max = 8, first_count = 400 };

static bugpack_session *session;
static pthread_barrier_t start;
static const char *const key = "display:unimpl:draw_rop3";

static void open_session(const temp_dir *dir, bool is_pedantic, uint64_t window_ms) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "bench";
    options.report_dir = dir->path;
    options.sample_window_ms = window_ms;
    options.pedantic.is_enabled = is_pedantic;
    options.pedantic.cap = options.pedantic.channel_cap = first_count;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
}

/* Of the calling thread alone: eight threads share fewer processors. */
static uint64_t cpu_ns(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now) == 0);
    return (uint64_t)now.tv_sec * BP_NS_PER_SEC + (uint64_t)now.tv_nsec;
}

static void *repeat(void *ret_ns) {
    (void)pthread_barrier_wait(&start);
    uint64_t began_ns = cpu_ns();
    for (unsigned i = 0; i < repeat_count; i++) {
        bugpack_gap(session, key);
    }
    *(double *)ret_ns = (double)(cpu_ns() - began_ns) / repeat_count;
    return NULL;
}

static void *repeat_unknown(void *ret_ns) {
    static const unsigned char message[64];
    (void)pthread_barrier_wait(&start);
    uint64_t began_ns = cpu_ns();
    for (unsigned i = 0; i < repeat_count; i++) {
        bugpack_gap_unknown(session, "display", 77, message, sizeof message);
    }
    *(double *)ret_ns = (double)(cpu_ns() - began_ns) / repeat_count;
    return NULL;
}

static int compare(const void *one, const void *other) {
    double difference = *(const double *)one - *(const double *)other;
    return (difference > 0) - (difference < 0);
}

/* The median of some rounds, each the mean of all threads, in ns of CPU time a call. */
static double measure(void *(*run)(void *), unsigned thread_count) {
    double rounds[round_count];
    for (unsigned round = 0; round < round_count; round++) {
        pthread_t threads[thread_max];
        double ns[thread_max];
        rounds[round] = 0;
        CHECK(pthread_barrier_init(&start, NULL, thread_count) == 0);
        for (unsigned i = 0; i < thread_count; i++) {
            CHECK(pthread_create(&threads[i], NULL, run, &ns[i]) == 0);
        }
        for (unsigned i = 0; i < thread_count; i++) {
            CHECK(pthread_join(threads[i], NULL) == 0);
            rounds[round] += ns[i] / thread_count;
        }
        CHECK(pthread_barrier_destroy(&start) == 0);
    }
    qsort(rounds, round_count, sizeof rounds[0], compare);
    return rounds[round_count / 2];
}

/* First sights, one each `pause_ms`; 0: as fast as they can be made. */
static void measure_first(const char *what, unsigned pause_ms) {
    static double us[first_count];
    char name[64];
    for (unsigned i = 0; i < first_count; i++) {
        (void)snprintf(name, sizeof name, "channel-%u:unimpl:%u", i / 200, i);
        uint64_t began_ns = bp_clock_monotonic_ns();
        bugpack_gap(session, name);
        uint64_t ended_ns = bp_clock_monotonic_ns();
        us[i] = (double)(ended_ns - began_ns) / 1000;
        if (pause_ms > 0) {
            bp_clock_sleep_until(ended_ns + pause_ms * BP_NS_PER_MS);
        }
    }
    qsort(us, first_count, sizeof us[0], compare);
    (void)printf("| %s | %.1f µs | %.1f µs | %.1f µs |\n", what, us[first_count / 2],
                 us[first_count * 99 / 100], us[first_count - 1]);
}

/* Many triggers of a person's while fifty gaps wait: what bugpack_report_async costs then. */
static void measure_storm(void) {
    static double us[first_count];
    char name[64];
    size_t count = 0;
    for (unsigned i = 0; i < 50; i++) {
        (void)snprintf(name, sizeof name, "channel-%u:unimpl:%u", i / 10, i);
        bugpack_gap(session, name);
    }
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    do {
        uint64_t began_ns = bp_clock_monotonic_ns();
        (void)!bugpack_report_async(session, NULL, NULL, NULL, NULL);
        us[count++] = (double)(bp_clock_monotonic_ns() - began_ns) / 1000;
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
        CHECK(bugpack_pedantic_get(session, &state, NULL) == BUGPACK_OK);
    } while (state.pending_count > 0 && count < first_count);
    qsort(us, count, sizeof us[0], compare);
    (void)printf("| `bugpack_report_async`, 50 gaps wait | %.1f µs | %.1f µs | %.1f µs |\n",
                 us[count / 2], us[count * 99 / 100], us[count - 1]);
}

static void in_session(bool is_pedantic, uint64_t window_ms, void (*run)(void)) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    open_session(&dir, is_pedantic, window_ms);
    run();
    bugpack_close(session);
    temp_dir_remove(&dir);
}

static void repeated(void) {
    (void)printf("| a repeated key, one thread | %.1f ns | | |\n", measure(repeat, 1));
    (void)printf("| a repeated key, eight threads | %.1f ns | | |\n", measure(repeat, thread_max));
    (void)printf("| a repeated unknown opcode | %.1f ns | | |\n", measure(repeat_unknown, 1));
}

static void first_calm(void) {
    measure_first("a first sight, one in 10 ms", 10);
}

static void first_storm(void) {
    measure_first("a first sight, 400 at once", 0);
}

int main(void) {
    (void)printf("| | median | p99 | largest |\n| --- | ---: | ---: | ---: |\n");
    in_session(true, BUGPACK_OFF, repeated);
    in_session(true, BUGPACK_OFF, first_calm);
    in_session(true, BUGPACK_OFF, first_storm);
    in_session(true, BUGPACK_OFF, measure_storm);
    return 0;
}
