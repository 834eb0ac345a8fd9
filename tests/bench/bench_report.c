/*
 * From trigger to published zip, for a small report and without its sample window; and how much of
 * that the triggering thread spends. Prints a table in Markdown.
 *
 *     bench_report [DIR]     DIR is where the reports go (default: a directory under $TMPDIR)
 */
#include <bugpack/bugpack.h>

#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { round_count = 300, log_count = 200 };

static uint64_t read_ns(clockid_t id) {
    struct timespec now;
    (void)clock_gettime(id, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t trigger_ns[round_count], trigger_cpu_ns[round_count], zip_ns[round_count];
static atomic_uint done_count;

static void on_done(const bugpack_report_result *result, void *context) {
    uint64_t *elapsed_ns = context;
    CHECK(result->status == BUGPACK_OK && result->missing_count == 0);
    *elapsed_ns = result->elapsed_ns;
    (void)unlink(result->path);
    atomic_fetch_add(&done_count, 1);
}

static int provide_state(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "{\"connected\": true, \"channels\": [\"main\", \"display\"]}");
}

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return a < b ? -1 : a > b;
}

static void print_row(const char *what, uint64_t *values) {
    qsort(values, round_count, sizeof values[0], compare);
    printf("| %s | %.1f | %.1f | %.1f |\n", what, (double)values[round_count / 2] / 1e3,
           (double)values[round_count * 99 / 100] / 1e3, (double)values[round_count - 1] / 1e3);
}

int main(int argument_count, char **arguments) {
    temp_dir dir = {.fd = -1};
    const char *path = arguments[1];
    if (argument_count < 2) {
        CHECK(temp_dir_make(&dir));
        path = dir.path;
    }
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "bench";
    options.report_dir = path;
    options.sample_window_ms = BUGPACK_OFF;
    bugpack *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "bench_report: %s\n", error.message);
        return 1;
    }
    CHECK(bugpack_provide_json(session, "session.json", provide_state, NULL, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < log_count; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "bench", "record %u of the bench, of usual length",
                    i);
    }
    for (unsigned i = 0; i < round_count; i++) {
        uint64_t began_ns = read_ns(CLOCK_MONOTONIC);
        uint64_t cpu_began_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
        bugpack_status status = bugpack_report_async(session, NULL, on_done, &zip_ns[i]);
        trigger_cpu_ns[i] = read_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_began_ns;
        trigger_ns[i] = read_ns(CLOCK_MONOTONIC) - began_ns;
        CHECK(status == BUGPACK_OK);
        while (atomic_load(&done_count) <= i) {
            (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
        }
    }
    printf(
        "| %d reports, in microseconds | median | p99 | largest |\n| --- | ---: | ---: | ---: |\n",
        round_count);
    print_row("the triggering thread, in `bugpack_report_async`", trigger_ns);
    print_row("of that, its CPU time", trigger_cpu_ns);
    print_row("trigger to published and synced zip", zip_ns);
    bugpack_close(session);
    if (dir.fd >= 0) {
        temp_dir_remove(&dir);
    }
    return 0;
}
