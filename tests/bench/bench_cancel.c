/*
 * How long a report takes to end after bugpack_cancel, by where it was then: cancelled at instants
 * spread over the whole of a report with 50 MiB of traffic, and while a large JSON artefact is
 * checked and indented. An argument names the directory that the reports are for.
 */
#include <bugpack/bugpack.h>

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { rounds = 200, json_bytes = 48 << 20 };

struct round {
    atomic_bool is_done;
    bugpack_status status;
    uint64_t done_ns;
};

static atomic_uint percent;

static void on_event(const bugpack_event *event, void *context) {
    (void)context;
    atomic_store(&percent, event->percent);
}

static void on_done(const bugpack_report_result *result, void *context) {
    struct round *round = context;
    round->status = result->status;
    round->done_ns = bp_clock_monotonic_ns();
    atomic_store(&round->is_done, true);
}

static void fill_traffic(bugpack *session) {
    static unsigned char bytes[4096];
    bugpack_channel *channel = NULL;
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.weight = 1u << 20; /* nearly all of the budget */
    CHECK(bugpack_channel_open(session, "display", &options, &channel, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < ((unsigned)50 << 20) / sizeof bytes; i++) {
        for (size_t at = 0; at < sizeof bytes; at += 7) {
            bytes[at] = (unsigned char)((i * 2654435761u >> 20) + at);
        }
        bugpack_traffic(channel, BUGPACK_RECEIVED, i, "draw", bytes, sizeof bytes);
    }
}

/* Cancels after `wait_ns`, or never (UINT64_MAX). From the cancel, or the trigger, to the end. */
static uint64_t run_round(bugpack *session, uint64_t wait_ns, bugpack_status *ret_status) {
    struct round round = {.status = BUGPACK_OK};
    uint64_t ticket = 0;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.ret_ticket = &ticket;
    atomic_store(&percent, 0);
    uint64_t began_ns = bp_clock_monotonic_ns();
    CHECK(bugpack_report_async(session, &request, on_done, &round) == BUGPACK_OK);
    if (wait_ns != UINT64_MAX) {
        bp_clock_sleep_until(began_ns + wait_ns);
        began_ns = bp_clock_monotonic_ns();
        (void)bugpack_cancel(session, ticket);
    }
    while (!atomic_load(&round.is_done)) {
        bp_clock_sleep_until(bp_clock_monotonic_ns() + 100000);
    }
    *ret_status = round.status;
    return round.done_ns > began_ns ? round.done_ns - began_ns : 0;
}

static bugpack *open_session(const temp_dir *dir, uint64_t traffic_bytes) {
    bugpack *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "bench";
    options.report_dir = dir->path;
    options.sample_window_ms = 100;
    options.history_interval_ms = BUGPACK_OFF;
    options.recorder_in_memory = true;
    options.traffic_budget_bytes = traffic_bytes;
    options.on_event = on_event;
    options.provider_timeout_ms = 60000;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    return session;
}

/* Over the whole of a report, ten percent of its progress a line. */
static void spread(bugpack *session) {
    bugpack_status status;
    uint64_t whole_ns = run_round(session, UINT64_MAX, &status);
    uint64_t longest_ns[11] = {0};
    unsigned counts[11] = {0};
    unsigned written_count = 0;
    (void)printf("  the whole report takes %.1f ms\n", (double)whole_ns / 1e6);
    for (unsigned i = 0; i < rounds; i++) {
        uint64_t took_ns = run_round(session, whole_ns * i / rounds, &status);
        unsigned tenth = atomic_load(&percent) / 10;
        if (status == BUGPACK_ERR_CANCELLED) {
            counts[tenth]++;
            longest_ns[tenth] = took_ns > longest_ns[tenth] ? took_ns : longest_ns[tenth];
        }
        written_count += status == BUGPACK_OK;
    }
    for (unsigned i = 0; i < 11; i++) {
        if (counts[i] > 0) {
            (void)printf("  from %3u %%: %3u cancels, the longest took %6.1f ms\n", 10 * i,
                         counts[i], (double)longest_ns[i] / 1e6);
        }
    }
    (void)printf("  %u came too late\n", written_count);
}

static int provide_json(bugpack_writer *writer, void *context) {
    (void)context;
    static char numbers[64 * 1024];
    for (size_t i = 0; i + 8 <= sizeof numbers; i += 8) {
        memcpy(numbers + i, "1234567,", 8);
    }
    (void)bugpack_write(writer, "[", 1);
    for (size_t done = 0; done < json_bytes; done += sizeof numbers) {
        (void)bugpack_write(writer, numbers, sizeof numbers);
    }
    return (int)bugpack_write(writer, "0]", 2);
}

int main(int argument_count, char **arguments) {
    temp_dir dir;
    if (argument_count > 1) {
        CHECK(setenv("TMPDIR", arguments[1], 1) == 0);
    }
    CHECK(temp_dir_make(&dir));
    (void)printf("50 MiB of traffic, into %s\n", dir.path);
    bugpack *session = open_session(&dir, (uint64_t)50 << 20);
    fill_traffic(session);
    spread(session);
    bugpack_close(session);
    (void)printf("one JSON artefact of %d MiB\n", json_bytes >> 20);
    session = open_session(&dir, 0);
    CHECK(bugpack_provide_json(session, "big.json", provide_json, NULL, NULL) == BUGPACK_OK);
    spread(session);
    bugpack_close(session);
    temp_dir_remove(&dir);
    return 0;
}
