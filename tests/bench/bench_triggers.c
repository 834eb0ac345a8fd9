/*
 * What the host's thread spends in triggers that take themselves, and what a full directory costs
 * the worker after each report. Prints a table in Markdown.
 */
#include <bugpack/bugpack.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/name.h"
#include "report/retention.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { round_count = 1000, report_count = 1000, prune_count = 200 };

static uint64_t spent_ns[round_count];

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static void print_row(const char *what, size_t count) {
    qsort(spent_ns, count, sizeof spent_ns[0], compare);
    printf("| %s | %.1f | %.1f | %.1f |\n", what, (double)spent_ns[count / 2] / 1e3,
           (double)spent_ns[count * 99 / 100] / 1e3, (double)spent_ns[count - 1] / 1e3);
}

static void measure_suppressed(bugpack_session *session) {
    while (bugpack_disconnect(session, "main", "gone", NULL, NULL) != BUGPACK_OK) {}
    for (unsigned i = 0; i < round_count; i++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        CHECK(bugpack_disconnect(session, "main", "gone", NULL, NULL) == BUGPACK_ERR_BUSY);
        spent_ns[i] = bp_clock_monotonic_ns() - began_ns;
    }
    print_row("`bugpack_disconnect` within the cool-down", round_count);
}

static void measure_disconnect(bugpack_session *session) {
    for (unsigned i = 0; i < prune_count; i++) {
        bugpack_status status;
        do {
            uint64_t began_ns = bp_clock_monotonic_ns();
            status = bugpack_disconnect(session, "main", "gone", NULL, NULL);
            spent_ns[i] = bp_clock_monotonic_ns() - began_ns;
            (void)usleep(status == BUGPACK_OK ? 0 : 1000);
        } while (status != BUGPACK_OK);
    }
    print_row("`bugpack_disconnect` that leads to a report, 16 channels open", prune_count);
}

static void measure_keep(bugpack_session *session) {
    for (unsigned i = 0; i < prune_count; i++) {
        uint64_t retained;
        do {
            uint64_t began_ns = bp_clock_monotonic_ns();
            bugpack_notify(session, BUGPACK_LEVEL_WARN, "bench", &retained, "turn %u", i);
            spent_ns[i] = bp_clock_monotonic_ns() - began_ns;
            (void)usleep(retained != 0 ? 0 : 1000);
        } while (retained == 0);
    }
    print_row("`bugpack_notify` that retains", prune_count);
}

static void measure_prune(const temp_dir *dir) {
    for (unsigned i = 0; i < report_count; i++) {
        char name[BP_NAME_STEM_BYTES + 8];
        bp_name_report_stem("full", BP_REPORT_BUGREPORT, NULL, i * BP_NS_PER_SEC, name);
        (void)snprintf(name + strlen(name), 8, ".zip");
        CHECK(temp_dir_write(dir, name, "", 0));
    }
    const bp_retention_policy policy = {.app = "full",
                                        .kinds = BP_RETENTION_ALL_KINDS,
                                        .max_count = report_count,
                                        .now_wall_ns = bp_clock_wall_ns()};
    for (unsigned i = 0; i < prune_count; i++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        CHECK(bp_retention_prune(dir->fd, dir->path, &policy, NULL, NULL, NULL, NULL) ==
              BUGPACK_OK);
        spent_ns[i] = bp_clock_monotonic_ns() - began_ns;
    }
    print_row("the worker, looking at 1000 reports of which none has to go", prune_count);
}

static uint64_t process_cpu_ns(void) {
    return bp_clock_read_ns(CLOCK_PROCESS_CPUTIME_ID);
}

/* What a beat costs the thread, and what looking at a watchdog costs the process. */
static void measure_watchdog(bugpack_session *session) {
    enum { beat_count = 50000000, idle_seconds = 20 };
    bugpack_watchdog *watchdog = NULL;
    uint64_t idle_ns[2];
    for (unsigned with = 0; with < 2; with++) {
        if (with == 1) {
            CHECK(bugpack_watchdog_open(session, "ui", 2000, &watchdog, NULL) == BUGPACK_OK);
        }
        uint64_t began_ns = process_cpu_ns();
        for (unsigned i = 0; i < idle_seconds; i++) {
            (void)sleep(1);
            bugpack_watchdog_beat(watchdog);
        }
        idle_ns[with] = process_cpu_ns() - began_ns;
    }
    uint64_t began_ns = bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID);
    for (unsigned i = 0; i < beat_count; i++) {
        bugpack_watchdog_beat(watchdog);
    }
    double beats_ns = (double)(bp_clock_read_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns);
    printf(
        "a beat: %.1f ns of CPU; a watchdog of 2 s: %.4f %% of a CPU, beside %.4f %% without\n\n",
        beats_ns / beat_count,
        ((double)idle_ns[1] - (double)idle_ns[0]) / (double)(idle_seconds * BP_NS_PER_SEC) * 100,
        (double)idle_ns[0] / (double)(idle_seconds * BP_NS_PER_SEC) * 100);
    bugpack_watchdog_close(watchdog);
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "bench";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.limits.report_dir_max_count = 10;
    bugpack_session *session = NULL;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    measure_watchdog(session);
    printf("| microseconds | median | p99 | largest |\n| --- | ---: | ---: | ---: |\n");
    measure_suppressed(session);
    measure_keep(session);
    bugpack_close(session);
    options.limits.disconnect_cooldown_ms = BUGPACK_OFF;
    options.limits.disconnect_cap = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < 16; i++) {
        char name[16];
        bugpack_channel_options channel_options = BUGPACK_CHANNEL_OPTIONS_INIT;
        bugpack_channel *channel;
        channel_options.weight = 1;
        (void)snprintf(name, sizeof name, "channel %u", i);
        CHECK(bugpack_channel_open(session, name, &channel_options, &channel, NULL) == BUGPACK_OK);
    }
    measure_disconnect(session);
    bugpack_close(session);
    measure_prune(&dir);
    temp_dir_remove(&dir);
    return 0;
}
