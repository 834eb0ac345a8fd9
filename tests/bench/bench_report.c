/*
 * From trigger to published zip, for a small report and without its sample window; and how much of
 * that the triggering thread spends. Then what reports with all defaults cost a host with ten
 * threads that wait: CPU time, and memory that stays. Prints tables in Markdown.
 *
 *     bench_report [DIR]     DIR is where the reports go (default: a directory under $TMPDIR)
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { round_count = 300, log_count = 200, default_count = 6, thread_count = 10 };

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

static pthread_mutex_t held = PTHREAD_MUTEX_INITIALIZER;

static void *wait_for_it(void *nothing) {
    CHECK(pthread_mutex_lock(&held) == 0 && pthread_mutex_unlock(&held) == 0);
    return nothing;
}

/* RssAnon of status(5), in KiB: without the pages of libdw and other files. */
static long own_kb(void) {
    char line[128];
    long kb = -1;
    FILE *status = fopen("/proc/self/status", "re");
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (strncmp(line, "RssAnon:", 8) == 0) {
            kb = strtol(line + 8, NULL, 10);
        }
    }
    CHECK(status != NULL && fclose(status) == 0 && kb >= 0);
    return kb;
}

static void measure_defaults(const char *path) {
    pthread_t threads[thread_count];
    bugpack_session *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "bench";
    options.report_dir = path;
    CHECK(pthread_mutex_lock(&held) == 0);
    for (unsigned i = 0; i < thread_count; i++) {
        CHECK(pthread_create(&threads[i], NULL, wait_for_it, NULL) == 0);
    }
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    (void)nanosleep(&(struct timespec){.tv_sec = 2}, NULL);
    long before_kb = own_kb();
    printf("\n| default reports, %d threads that wait | CPU ms |\n| --- | ---: |\n", thread_count);
    for (unsigned i = 0; i < default_count; i++) {
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        uint64_t began_ns = read_ns(CLOCK_PROCESS_CPUTIME_ID);
        CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
        printf("| report %u | %.1f |\n", i + 1,
               (double)(read_ns(CLOCK_PROCESS_CPUTIME_ID) - began_ns) / 1e6);
        CHECK(unlink(result.path) == 0);
    }
    (void)nanosleep(&(struct timespec){.tv_sec = 60}, NULL);
    printf("\nAnonymous memory a minute later: %ld KiB more than before the first.\n",
           own_kb() - before_kb);
    bugpack_close(session);
    CHECK(pthread_mutex_unlock(&held) == 0);
    for (unsigned i = 0; i < thread_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
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
    bugpack_session *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "bench_report: %s\n", error.message);
        return 1;
    }
    CHECK(bugpack_provide(session, "session.json", BUGPACK_PROVIDE_JSON, provide_state, NULL,
                          NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < log_count; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "bench", "record %u of the bench, of usual length",
                    i);
    }
    for (unsigned i = 0; i < round_count; i++) {
        uint64_t began_ns = read_ns(CLOCK_MONOTONIC);
        uint64_t cpu_began_ns = read_ns(CLOCK_THREAD_CPUTIME_ID);
        bugpack_status status = bugpack_report_async(session, NULL, on_done, &zip_ns[i], NULL);
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
    (void)fflush(stdout);
    measure_defaults(path);
    if (dir.fd >= 0) {
        temp_dir_remove(&dir);
    }
    return 0;
}
