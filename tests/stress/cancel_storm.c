/*
 * Reports that are taken back at any instant, from other threads: each ends once, as CANCELLED or
 * as WRITTEN, and nothing but whole zips is left. The number of rounds may be given. Run under
 * ThreadSanitizer too.
 */
#include <bugpack/bugpack.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { record_count = 1000 };

/* One round: what the callback was told. */
struct round {
    atomic_uint done_count;
    bugpack_status status;
};

static void on_done(const bugpack_report_result *result, void *context) {
    struct round *round = context;
    round->status = result->status;
    if (result->status != BUGPACK_OK && result->status != BUGPACK_ERR_CANCELLED) {
        (void)fprintf(stderr, "it ended otherwise: %s\n", result->error.message);
    }
    CHECK(result->status == BUGPACK_OK || result->path[0] == '\0');
    atomic_fetch_add(&round->done_count, 1);
}

static atomic_uint started_count, ended_count;

static void on_event(const bugpack_event *event, void *context) {
    (void)context;
    atomic_fetch_add(&started_count, event->kind == BUGPACK_EVENT_STARTED);
    atomic_fetch_add(&ended_count, event->kind >= BUGPACK_EVENT_WRITTEN);
}

static int provide(bugpack_writer *writer, void *context) {
    (void)context;
    for (unsigned i = 0; i < 20; i++) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + 100000);
        (void)bugpack_printf(writer, "line %u\n", i);
    }
    return 0;
}

/* A second thread takes back whatever there is, and looks at events, while the first one does. */
static atomic_bool must_stop;

static void *meddle(void *argument) {
    bugpack_session *session = argument;
    bugpack_event event = BUGPACK_EVENT_INIT;
    while (!atomic_load(&must_stop)) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + 61 * BP_NS_PER_MS);
        bugpack_status status = bugpack_cancel(session, 0, NULL);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_NO_TICKET);
        (void)bugpack_events_fd(session, NULL);
        while (bugpack_next_event(session, &event)) {}
    }
    return NULL;
}

/* So that copying, printing and deflating take some time each. */
static void fill_rings(bugpack_session *session) {
    static unsigned char bytes[2048];
    bugpack_channel *channel = NULL;
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    CHECK(bugpack_channel_open(session, "display", &options, &channel, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < record_count; i++) {
        memset(bytes, (int)(i * 2654435761u >> 24), sizeof bytes / 2);
        bugpack_traffic(channel, BUGPACK_RECEIVED, i, "draw", bytes, sizeof bytes);
        bugpack_log(session, BUGPACK_LEVEL_INFO, "storm", "record %u of what is to be copied", i);
    }
}

static uint64_t next_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

static void run_round(bugpack_session *session, uint64_t *random, uint64_t *written_count) {
    struct round rounds[2];
    uint64_t tickets[2] = {0, 0};
    for (unsigned i = 0; i < 2; i++) {
        atomic_init(&rounds[i].done_count, 0);
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        request.ret_ticket = &tickets[i];
        CHECK(bugpack_report_async(session, &request, on_done, &rounds[i], NULL) == BUGPACK_OK);
    }
    bp_clock_sleep_until(bp_clock_monotonic_ns() + next_random(random) % (60 * BP_NS_PER_MS));
    for (unsigned i = 2; i-- > 0;) {
        bugpack_status status = bugpack_cancel(session, tickets[i], NULL);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_NO_TICKET);
        while (atomic_load(&rounds[i].done_count) == 0) {
            bp_clock_sleep_until(bp_clock_monotonic_ns() + 50000);
        }
        CHECK(rounds[i].status == BUGPACK_OK || rounds[i].status == BUGPACK_ERR_CANCELLED);
        *written_count += rounds[i].status == BUGPACK_OK;
    }
}

int main(int argument_count, char **arguments) {
    temp_dir dir;
    bugpack_session *session = NULL;
    pthread_t meddler;
    unsigned long rounds = run_length(argument_count, arguments, 50);
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "storm";
    options.report_dir = dir.path;
    options.sample_window_ms = 5;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.limits.report_dir_max_count = BUGPACK_OFF;
    options.on_event = on_event;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_provide(session, "slow.txt", BUGPACK_PROVIDE_TEXT, provide, NULL, NULL) ==
          BUGPACK_OK);
    fill_rings(session);
    CHECK(pthread_create(&meddler, NULL, meddle, session) == 0);
    uint64_t random = bp_clock_monotonic_ns(), written_count = 0;
    for (unsigned long i = 0; i < rounds; i++) {
        run_round(session, &random, &written_count);
    }
    atomic_store(&must_stop, true);
    CHECK(pthread_join(meddler, NULL) == 0);
    bugpack_close(session);
    CHECK(atomic_load(&ended_count) == 2 * rounds);
    CHECK(atomic_load(&started_count) <= 2 * rounds);
    CHECK(temp_dir_count(&dir) == written_count);
    (void)printf("%lu rounds of two reports: %" PRIu64 " written, %u never begun\n", rounds,
                 written_count, (unsigned)(2 * rounds - atomic_load(&started_count)));
    temp_dir_remove(&dir);
    return 0;
}
