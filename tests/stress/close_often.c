/*
 * A session that is opened and closed over and over while threads keep on calling the newest handle
 * that they have seen, closed or not: nothing crashes, and what stays of closed sessions is
 * bounded.
 *
 *   close_often [ROUNDS]      1000 for the figure in BENCHMARKS.md
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "support/check.h"
#include "support/temp_dir.h"

enum {
    caller_count = 3,
    settle_rounds = 200, /* until the closed sessions that are kept are as many as ever */
    /* A caller is never so far behind that its session is not kept any more. */
    behind_max = BUGPACK_CLOSED_KEPT / 2
};

struct handle {
    bugpack_session *session;
    bugpack_channel *channel;
};

static temp_dir dir;
static struct handle handles[BUGPACK_CLOSED_KEPT];
static atomic_uint newest;                /* its number; it stands in `newest % KEPT` */
static atomic_uint seen_by[caller_count]; /* the number that a caller works with */
static atomic_bool must_stop;

static void *call(void *argument) {
    unsigned own = (unsigned)(uintptr_t)argument;
    while (!atomic_load(&must_stop)) {
        unsigned number = atomic_load(&newest);
        atomic_store(&seen_by[own], number);
        struct handle handle = handles[number % BUGPACK_CLOSED_KEPT];
        for (unsigned i = 0; i < 20; i++) {
            bugpack_log(handle.session, BUGPACK_LEVEL_INFO, "often", "caller %u", own);
            bugpack_traffic(handle.channel, BUGPACK_SENT, 1, NULL, "message", 7);
            bugpack_notify(handle.session, BUGPACK_LEVEL_WARN, "often", NULL, "caller %u", own);
            (void)bugpack_unprovide(handle.session, "nobody.txt");
        }
    }
    return NULL;
}

static struct handle open_one(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "often";
    options.report_dir = dir.path;
    options.recorder.is_in_memory = true;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.recorder.log_ring_bytes = 16 * 1024;
    options.recorder.traffic_budget_bytes = 1 << 20;
    struct handle made = {NULL, NULL};
    CHECK(bugpack_open(&options, &made.session, NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(made.session, "often", NULL, &made.channel, NULL) == BUGPACK_OK);
    return made;
}

static void wait_for_callers(unsigned number) {
    for (unsigned i = 0; i < caller_count; i++) {
        while (number - atomic_load(&seen_by[i]) > behind_max) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
        }
    }
}

static size_t count_mappings(void) {
    size_t count = 0;
    FILE *maps = fopen("/proc/self/maps", "re");
    for (int c; maps != NULL && (c = fgetc(maps)) != EOF;) {
        count += c == '\n';
    }
    if (maps != NULL) {
        (void)fclose(maps);
    }
    return count;
}

/* 0 where the allocator does not tell: a sanitizer's, which has mappings of its own too. */
static size_t count_heap_bytes(void) {
#ifdef __GLIBC__
    return mallinfo2().uordblks;
#else
    return 0;
#endif
}

/* With nobody else in the process: what a closed session costs, and that it is bounded. */
static void stay_bounded(unsigned round_count) {
    size_t heap_bytes[2] = {0, 0}, mappings[2] = {0, 0};
    size_t before_bytes = count_heap_bytes();
    for (unsigned i = 0; i < round_count; i++) {
        bugpack_close(open_one().session);
        if (i == settle_rounds || i == round_count - 1) {
            heap_bytes[i != settle_rounds] = count_heap_bytes();
            mappings[i != settle_rounds] = count_mappings();
        }
    }
    if (heap_bytes[0] == 0) {
        (void)printf("what stays was not looked at: this allocator does not tell\n");
        return;
    }
    (void)printf("%u sessions with a channel opened and closed: %zu bytes of heap for each of the "
                 "%d that are kept; after %d of them %zu bytes and %zu mappings in all, after all "
                 "of them %zu and %zu\n",
                 round_count, (heap_bytes[0] - before_bytes) / BUGPACK_CLOSED_KEPT,
                 BUGPACK_CLOSED_KEPT, settle_rounds, heap_bytes[0], mappings[0], heap_bytes[1],
                 mappings[1]);
    /* One lost session in fifty would be more; the heap's own holes are not. */
    CHECK(heap_bytes[1] <= heap_bytes[0] + (round_count - settle_rounds) * 20 + 16384);
    CHECK(mappings[1] <= mappings[0] + 8);
}

static void survive_callers(unsigned round_count) {
    pthread_t callers[caller_count];
    handles[0] = open_one();
    for (uintptr_t i = 0; i < caller_count; i++) {
        CHECK(pthread_create(&callers[i], NULL, call, (void *)i) == 0);
    }
    for (unsigned number = 1; number < round_count; number++) {
        handles[number % BUGPACK_CLOSED_KEPT] = open_one();
        atomic_store(&newest, number);
        bugpack_close(handles[(number - 1) % BUGPACK_CLOSED_KEPT].session);
        wait_for_callers(number);
    }
    bugpack_close(handles[(round_count - 1) % BUGPACK_CLOSED_KEPT].session);
    atomic_store(&must_stop, true);
    for (unsigned i = 0; i < caller_count; i++) {
        CHECK(pthread_join(callers[i], NULL) == 0);
    }
}

/* A stream holds on to its session itself. */
static void outlive_with_a_stream(void) {
    struct handle first = open_one();
    bugpack_error error = BUGPACK_ERROR_INIT;
    FILE *stream = bugpack_log_stream(first.session, BUGPACK_LEVEL_INFO, NULL, &error);
    if (stream == NULL) {
        CHECK(error.status == BUGPACK_ERR_UNSUPPORTED);
        bugpack_close(first.session);
        return;
    }
    CHECK(fprintf(stream, "kept\nbegun") > 0);
    bugpack_close(first.session);
    for (unsigned i = 0; i < BUGPACK_CLOSED_KEPT + 2; i++) {
        bugpack_close(open_one().session);
    }
    CHECK(fprintf(stream, " and ended\n") > 0 && fflush(stream) == 0);
    CHECK(fclose(stream) == 0);
}

int main(int argument_count, char **arguments) {
    unsigned long given = run_length(argument_count, arguments, 400);
    CHECK(given > settle_rounds + 1 && given <= 1000000);
    CHECK(temp_dir_make(&dir));
    stay_bounded((unsigned)given);
    survive_callers((unsigned)given / 4);
    outlive_with_a_stream();
    temp_dir_remove(&dir);
    return 0;
}
