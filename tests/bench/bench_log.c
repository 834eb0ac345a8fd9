/*
 * What a log call costs the host: with a text of 64 bytes that is there already, with one that is
 * formatted, and below the level; beside what anybody writes first, a mutex around a list of
 * allocations, and stdio. Prints the rows of a Markdown table; tests/bench/ring puts it together.
 *
 *     bench_log [DIR]      DIR is where the session's files are (default: /dev/shm)
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "bench/list_ring.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { ring_bytes = 32 << 20, repeat_count = 15, call_count = 300000, text_bytes = 64 };

static const char text[] = "cache miss for image 123456, tile 17 of 40 at 0640,0480: refetch";
static const char format[] = "cache miss for image %u, tile %d of 40 at %04d,%04d: %s";
#define ARGUMENTS 123456u, 17, 640, 480, "refetch"

typedef void log_fn(void *to);

static void log_bytes(void *session) {
    bugpack_log_bytes(session, BUGPACK_LEVEL_INFO, "display", text, text_bytes);
}

static void log_formatted(void *session) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "display", format, ARGUMENTS);
}

static void log_filtered(void *session) {
    bugpack_log(session, BUGPACK_LEVEL_TRACE, "display", format, ARGUMENTS);
}

static void list_bytes(void *list) {
    keep_in_list(list, text, text_bytes, ring_bytes);
}

static void list_formatted(void *list) {
    char line[256];
    int length = snprintf(line, sizeof line, format, ARGUMENTS);
    keep_in_list(list, line, (size_t)length, ring_bytes);
}

/* Without a time, a level or a thread, and with a write to nowhere for every 4 KiB. */
static void stdio_bytes(void *file) {
    CHECK(fwrite(text, 1, text_bytes, file) == text_bytes);
}

static void stdio_formatted(void *file) {
    CHECK(fprintf(file, format, ARGUMENTS) > 0);
}

static int compare_doubles(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return a < b ? -1 : a > b;
}

static void print_column(log_fn *log, void *to) {
    double ns[repeat_count + 1];
    if (log == NULL) {
        printf(" |");
        return;
    }
    for (int repeat = 0; repeat <= repeat_count; repeat++) {
        uint64_t began_ns = bp_clock_monotonic_ns();
        for (unsigned i = 0; i < call_count; i++) {
            log(to);
        }
        ns[repeat] = (double)(bp_clock_monotonic_ns() - began_ns) / call_count;
    }
    qsort(ns + 1, repeat_count, sizeof ns[0], compare_doubles); /* the first only fills it */
    printf(" %.0f (%.0f) |", ns[1 + repeat_count / 2], ns[1]);
}

static void print_row(const char *what, log_fn *bytes, log_fn *formatted, log_fn *filtered,
                      void *to) {
    printf("| %s |", what);
    print_column(bytes, to);
    print_column(formatted, to);
    print_column(filtered, to);
    printf("\n");
}

static void bench_session(const char *what, const temp_dir *dir, const char *recorder_dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_session *session = NULL;
    options.app_name = "bench-log";
    options.report_dir = dir->path;
    options.recorder.log_ring_bytes = ring_bytes;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.recorder.dir = recorder_dir;
    options.recorder.is_in_memory = recorder_dir == NULL;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    print_row(what, log_bytes, log_formatted, log_filtered, session);
    bugpack_close(session);
}

static double time_calls(bugpack_session *session, const char *message, unsigned count) {
    uint64_t began_ns = bp_clock_monotonic_ns();
    for (unsigned i = 0; i < count; i++) {
        bugpack_log_bytes(session, BUGPACK_LEVEL_INFO, "display", message, text_bytes);
    }
    return (double)(bp_clock_monotonic_ns() - began_ns) / count;
}

/* Redaction at the call, beside the same calls without, in turns. */
static void bench_redaction(const temp_dir *dir) {
    static const char secret[] =
        "connect to cache 17 as bob with password=hunter2hunter2 and retry";
    static const struct {
        const char *what, *message;
        unsigned count;
    } rows[] = {{"without a keyword", text, call_count}, {"with a secret", secret, 30000}};
    bugpack_session *sessions[2];
    for (unsigned i = 0; i < 2; i++) {
        bugpack_options options = BUGPACK_OPTIONS_INIT;
        options.app_name = "bench-log";
        options.report_dir = dir->path;
        options.recorder.log_ring_bytes = ring_bytes;
        options.recorder.history_interval_ms = BUGPACK_OFF;
        options.recorder.is_in_memory = true;
        options.redaction.mode = i == 0 ? 0 : BUGPACK_REDACT_AT_CALL;
        CHECK(bugpack_open(&options, &sessions[i], NULL) == BUGPACK_OK);
    }
    printf("\n| 64 B as they are, in memory | plain, ns | redacted at the call, ns "
           "|\n|---|---|---|\n");
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        double ns[2][repeat_count];
        for (int repeat = -1; repeat < repeat_count; repeat++) {
            for (unsigned i = 0; i < 2; i++) {
                double each = time_calls(sessions[i], rows[row].message, rows[row].count);
                ns[i][repeat < 0 ? 0 : repeat] = each; /* the first only fills the rings */
            }
        }
        qsort(ns[0], repeat_count, sizeof ns[0][0], compare_doubles);
        qsort(ns[1], repeat_count, sizeof ns[1][0], compare_doubles);
        printf("| %s | %.0f (%.0f) | %.0f (%.0f) |\n", rows[row].what, ns[0][repeat_count / 2],
               ns[0][0], ns[1][repeat_count / 2], ns[1][0]);
    }
    bugpack_close(sessions[0]);
    bugpack_close(sessions[1]);
}

/* glibc locks and allocates cheaper while there is one thread alone, but no host has only one. */
static void *sleep_forever(void *unused) {
    while (pause() != 0) {}
    return unused;
}

int main(int argument_count, char **arguments) {
    char recorder_dir[400];
    pthread_t sleeper;
    temp_dir dir;
    CHECK(strlen(text) == text_bytes);
    CHECK(pthread_create(&sleeper, NULL, sleep_forever, NULL) == 0);
    CHECK(temp_dir_make(&dir));
    (void)snprintf(recorder_dir, sizeof recorder_dir, "%.300s/bugpack-bench-log.%ld",
                   argument_count > 1 ? arguments[1] : "/dev/shm", (long)getpid());
    bench_session("bugpack, in memory", &dir, NULL);
    bench_session("bugpack, in a mapped file", &dir, recorder_dir);
    CHECK(rmdir(recorder_dir) == 0);
    list_ring list = {.oldest = NULL};
    list.newest = &list.oldest;
    CHECK(pthread_mutex_init(&list.mutex, NULL) == 0);
    print_row("mutex and malloc", list_bytes, list_formatted, NULL, &list);
    FILE *nowhere = fopen("/dev/null", "we");
    CHECK(nowhere != NULL);
    print_row("stdio into /dev/null", stdio_bytes, stdio_formatted, NULL, nowhere);
    (void)fclose(nowhere);
    bench_redaction(&dir);
    temp_dir_remove(&dir);
    return 0;
}
