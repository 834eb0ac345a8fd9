/*
 * One channel for each connection: thousands that follow each other, hundreds at once, and threads
 * that record on a channel while it is closed. Reports have the newest messages, and memory is
 * bounded.
 *
 *     stress_traffic_channels [CONNECTIONS]
 */
#include <bugpack/bugpack.h>

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sanitizer.h"
#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { open_count = 500, thread_count = 4 };

/* The second: the default. The third: what thousands of connections may add. */
static const uint64_t small_bytes = (uint64_t)8 << 20, default_bytes = 0;
static const long allowed_kb = 8 * 1024;

static temp_dir dir;

/* `recorder_dir` NULL: the usual one. */
static bugpack_session *open_session(uint64_t budget_bytes, const char *recorder_dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_session *session = NULL;
    options.app_name = "server";
    options.report_dir = dir.path;
    options.recorder.dir = recorder_dir;
    options.recorder.traffic_budget_bytes = budget_bytes;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    return session;
}

static bugpack_channel *open_channel(bugpack_session *session, const char *name) {
    bugpack_channel *channel = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_channel_open(session, name, NULL, &channel, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, error.message);
    }
    CHECK(channel != NULL);
    return channel;
}

/* What this process has resident, its mapped rings included, without what glibc keeps for later. */
static long pss_kb(void) {
    char line[256];
    long kb = -1;
#ifdef __GLIBC__
    (void)malloc_trim(0);
#endif
    FILE *file = fopen("/proc/self/smaps_rollup", "re");
    while (file != NULL && kb < 0 && fgets(line, sizeof line, file) != NULL) {
        (void)sscanf(line, "Pss: %ld kB", &kb);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
    return kb;
}

/* How often a text is in traffic-index.jsonl of a report, which is removed. */
static unsigned count_in_index(const char *path, const char *text) {
    size_t size = 0;
    unsigned count = 0;
    char *index = report_read(path, "traffic-index.jsonl", &size);
    CHECK(index != NULL);
    for (const char *at = index; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    free(index);
    CHECK(unlink(path) == 0);
    return count;
}

static void report_now(bugpack_session *session, bugpack_report_result *ret_result) {
    *ret_result = (bugpack_report_result)BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_report(session, NULL, ret_result, NULL) == BUGPACK_OK);
}

static void on_done(const bugpack_report_result *result, void *context) {
    CHECK(result->status == BUGPACK_OK);
    (void)snprintf(context, BUGPACK_REPORT_PATH_BYTES, "%s", result->path);
}

/* Opens, records and closes; the late message is recorded nowhere. */
static void connect_once(bugpack_session *session, unsigned long number) {
    static const char bytes[3000];
    char type_name[32];
    bugpack_channel *channel = open_channel(session, "main");
    (void)snprintf(type_name, sizeof type_name, "connection %lu.", number);
    bugpack_traffic(channel, BUGPACK_SENT, 1, type_name, bytes, number % sizeof bytes);
    bugpack_channel_close(channel);
    bugpack_traffic(channel, BUGPACK_SENT, 1, "late", bytes, 1);
}

static void expect_connection(const char *report_path, unsigned long number) {
    char type_name[32];
    (void)snprintf(type_name, sizeof type_name, "connection %lu.", number);
    CHECK(count_in_index(report_path, type_name) == 1);
}

/* A client that reconnects: each connection is recorded, and the newest are in every report. */
static void reconnect(unsigned long connection_count) {
    static char middle[BUGPACK_REPORT_PATH_BYTES];
    bugpack_session *session = open_session(small_bytes, NULL);
    bugpack_report_result report;
    const unsigned long first = connection_count / 4, half = connection_count / 2;
    for (unsigned long i = 0; i < first; i++) {
        connect_once(session, i);
    }
    report_now(session, &report);
    expect_connection(report.path, first - 1);
    long before_kb = pss_kb();
    for (unsigned long i = first; i < connection_count; i++) {
        connect_once(session, i);
        if (i == half) {
            CHECK(bugpack_report_async(session, NULL, on_done, middle, NULL) == BUGPACK_OK);
        }
    }
    report_now(session, &report);
    long after_kb = pss_kb();
    bugpack_close(session);
    (void)printf("%lu connections: %ld KiB after %lu of them, %ld KiB at the end\n",
                 connection_count, before_kb, first, after_kb);
    expect_connection(report.path, connection_count - 1);
    expect_connection(middle, half);
    CHECK(BP_SANITIZED || before_kb < 0 || after_kb - before_kb < allowed_kb);
}

/* A server with a channel for each connection. */
static void open_many(void) {
    static bugpack_channel *channels[open_count];
    bugpack_session *session = open_session(default_bytes, NULL);
    bugpack_report_result report;
    for (int i = 0; i < open_count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "connection-%d", i);
        channels[i] = open_channel(session, name);
    }
    for (int i = 0; i < open_count; i++) {
        bugpack_traffic(channels[i], BUGPACK_RECEIVED, (uint32_t)i, "hello", "hello", 5);
        if (i % 2 == 0) {
            bugpack_channel_close(channels[i]);
        }
    }
    report_now(session, &report);
    CHECK(count_in_index(report.path, "\"hello\"") == open_count);
    bugpack_close(session);
}

typedef struct race {
    bugpack_session *session;
    _Atomic(bugpack_channel *) channel;
    atomic_bool is_over;
} race;

static size_t filter(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                     void *context) {
    atomic_int *open = context;
    (void)direction;
    (void)type;
    (void)bytes;
    CHECK(atomic_load(open) == 1); /* else the host may have freed it */
    return byte_count;
}

static void *record(void *context) {
    race *self = context;
    static const char bytes[200];
    while (!atomic_load(&self->is_over)) {
        bugpack_traffic(atomic_load(&self->channel), BUGPACK_SENT, 1, "m", bytes, sizeof bytes);
    }
    return NULL;
}

static void *take_reports(void *context) {
    race *self = context;
    while (!atomic_load(&self->is_over)) {
        bugpack_report_result report;
        report_now(self->session, &report);
        CHECK(unlink(report.path) == 0);
    }
    return NULL;
}

/* Threads that do not know that the channel is closed, and reports meanwhile. */
static void race_against_close(unsigned long round_count) {
    static atomic_int is_open[2];
    race self = {.session = open_session(default_bytes, NULL)};
    pthread_t threads[thread_count + 1];
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.filter = filter;
    for (int i = 0; i < thread_count; i++) {
        CHECK(pthread_create(&threads[i], NULL, record, &self) == 0);
    }
    CHECK(pthread_create(&threads[thread_count], NULL, take_reports, &self) == 0);
    for (unsigned long i = 0; i < round_count; i++) {
        bugpack_channel *channel = NULL;
        options.filter_context = &is_open[i % 2];
        atomic_store(&is_open[i % 2], 1);
        CHECK(bugpack_channel_open(self.session, "race", &options, &channel, NULL) == BUGPACK_OK);
        atomic_store(&self.channel, channel);
        bugpack_traffic(channel, BUGPACK_RECEIVED, 2, "own", "x", 1);
        bugpack_channel_close(channel);
        atomic_store(&is_open[i % 2], 0);
    }
    atomic_store(&self.is_over, true);
    for (int i = 0; i <= thread_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    bugpack_close(self.session);
}

static void on_recovered(const bugpack_report_result *result, void *context) {
    unsigned *count = context;
    (*count)++;
    CHECK(result->status == BUGPACK_OK);
    CHECK(count_in_index(result->path, "\"hello\"") == open_count);
}

/* Killed with as many channels, half of them closed: recovery has what each of them said. */
static void recover_many(void) {
    int ready[2];
    char byte;
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        bugpack_session *session = open_session(default_bytes, dir.path);
        for (int i = 0; i < open_count; i++) {
            char name[32];
            (void)snprintf(name, sizeof name, "connection-%d", i / 2);
            bugpack_channel *channel = open_channel(session, name);
            bugpack_traffic(channel, BUGPACK_RECEIVED, (uint32_t)i, "hello", "hello", 5);
            if (i % 2 == 0) {
                bugpack_channel_close(channel);
            }
        }
        CHECK(write(ready[1], "x", 1) == 1);
        for (;;) {
            (void)pause();
        }
    }
    (void)close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
    CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
    unsigned count = 0;
    CHECK(bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                     .recorder_dir = dir.path,
                                                     .report_dir = dir.path,
                                                     .app_name = "server",
                                                     .on_report = on_recovered,
                                                     .context = &count},
                          NULL) == BUGPACK_OK);
    CHECK(count == 1);
}

int main(int argument_count, char **arguments) {
    unsigned long connection_count = run_length(argument_count, arguments, 4000);
    CHECK(temp_dir_make(&dir));
    reconnect(connection_count);
    open_many();
    recover_many();
    race_against_close(connection_count / 20);
    temp_dir_remove(&dir);
    return 0;
}
