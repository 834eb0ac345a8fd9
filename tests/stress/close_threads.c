/*
 * A session is closed, twice at once, while sixteen threads record, one waits for reports, two
 * trigger and one registers: each call is refused or done, none hangs, and nothing of the host's is
 * touched once the close has returned. Run under ThreadSanitizer too.
 */
#include <bugpack/bugpack.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum {
    writer_count = 16,
    trigger_count = 2,
    thread_count = writer_count + trigger_count + 3, /* and a reader, a guest, a second closer */
    calls_before_close = 400,
    calls_after_close = 50
};

/* What host functions work with, until the close has returned. */
struct context {
    atomic_uint done_count, filter_count;
};

/* One session from open to close. */
struct round {
    bugpack_session *session;
    bugpack_channel *own[writer_count], *shared;
    FILE *stream;
    struct context *context;
};

static temp_dir dir;
static struct round now;
static pthread_barrier_t begins, ends;
static bool is_over; /* between two rounds */
static atomic_bool may_close, is_closed;
static atomic_uint call_count, accepted_count, report_count;

/* True for as long as a round lasts, and a little longer. */
static bool goes_on(unsigned *late_count) {
    if (atomic_fetch_add(&call_count, 1) == calls_before_close) {
        atomic_store(&may_close, true);
    }
    return !atomic_load(&is_closed) || (*late_count)++ < calls_after_close;
}

static void write_all(unsigned number) {
    unsigned late_count = 0;
    char message[6000];
    memset(message, 'm', sizeof message);
    for (unsigned long i = 0; goes_on(&late_count); i++) {
        size_t byte_count = i % 2 == 0 ? 64 : sizeof message;
        bugpack_log(now.session, BUGPACK_LEVEL_INFO, "close", "writer %u, record %lu", number, i);
        bugpack_traffic(now.own[number], BUGPACK_SENT, 1, "own", message, byte_count);
        bugpack_traffic(now.shared, BUGPACK_RECEIVED, 2, "shared", message, byte_count);
        bugpack_notify(now.session, BUGPACK_LEVEL_WARN, "close", NULL, "writer %u, %lu", number,
                       i % 8);
        if (now.stream != NULL) {
            (void)fprintf(now.stream, "writer %u, line %lu\n", number, i);
        }
        bugpack_log(now.session, BUGPACK_LEVEL_WARN, NULL, "writer %u", number);
    }
}

static void wait_for_reports(void) {
    for (unsigned late_count = 0; goes_on(&late_count);) {
        bool was_closed = atomic_load(&is_closed);
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        bugpack_status status = bugpack_report(now.session, NULL, &result, NULL);
        CHECK(status == result.status);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY || status == BUGPACK_ERR_CLOSED);
        CHECK(!was_closed || status == BUGPACK_ERR_CLOSED);
        atomic_fetch_add(&report_count, status == BUGPACK_OK);
    }
}

static void count_done(const bugpack_report_result *result, void *context) {
    CHECK(result->status == BUGPACK_OK);
    atomic_fetch_add(&((struct context *)context)->done_count, 1);
}

static void trigger(void) {
    for (unsigned late_count = 0; goes_on(&late_count);) {
        bool was_closed = atomic_load(&is_closed);
        bugpack_status status =
            bugpack_report_async(now.session, NULL, count_done, now.context, NULL);
        CHECK(!was_closed || status == BUGPACK_ERR_CLOSED);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY || status == BUGPACK_ERR_CLOSED);
        atomic_fetch_add(&accepted_count, status == BUGPACK_OK);
        (void)nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    }
}

static int provide_number(bugpack_writer *writer, void *context) {
    struct context *counts = context;
    return bugpack_printf(writer, "%u", atomic_load(&counts->done_count));
}

static int provide_turn(bugpack_writer *writer, void *context) {
    return atomic_load((atomic_bool *)context) ? bugpack_printf(writer, "registered") : -1;
}

/* A provider whose context ends right after it was taken off: a later call would be seen. While the
 * session closes it may still be called, and its context stays. */
static void provide_for_a_turn(void) {
    static atomic_bool *_Atomic kept[4096];
    static atomic_uint kept_count;
    atomic_bool *is_registered = malloc(sizeof *is_registered);
    CHECK(is_registered != NULL);
    atomic_init(is_registered, true);
    bugpack_status status = bugpack_provide(now.session, "turn.txt", BUGPACK_PROVIDE_TEXT,
                                            provide_turn, is_registered, NULL);
    bool is_off = bugpack_unprovide(now.session, "turn.txt");
    if (is_off || status != BUGPACK_OK) {
        atomic_store(is_registered, false);
        free(is_registered);
    } else {
        unsigned place = atomic_fetch_add(&kept_count, 1);
        CHECK(place < sizeof kept / sizeof kept[0]);
        atomic_store(&kept[place], is_registered);
    }
}

/* Registers, takes off and opens: what changes the session itself. */
static void come_and_go(void) {
    unsigned late_count = 0;
    while (goes_on(&late_count)) {
        bool was_closed = atomic_load(&is_closed);
        bugpack_status status = bugpack_provide(now.session, "guest.json", BUGPACK_PROVIDE_JSON,
                                                provide_number, now.context, NULL);
        CHECK(status == (was_closed ? BUGPACK_ERR_CLOSED : status));
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_CLOSED);
        (void)bugpack_unprovide(now.session, "guest.json");
        provide_for_a_turn();
        bugpack_channel *none = NULL;
        status = bugpack_channel_open(now.session, "shared", NULL, &none, NULL);
        CHECK(status == BUGPACK_ERR_INVALID || status == BUGPACK_ERR_CLOSED);
        FILE *late = bugpack_log_stream(now.session, BUGPACK_LEVEL_INFO, "late", NULL);
        CHECK(late == NULL || fclose(late) == 0);
    }
    CHECK(!bugpack_unprovide(now.session, "guest.json"));
}

static void close_too(void) {
    unsigned late_count = 0;
    while (!atomic_load(&may_close)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    while (goes_on(&late_count)) {
        bugpack_close(now.session);
        /* Whoever of the two did it: it is done, with all that was accepted. */
        CHECK(bugpack_report_async(now.session, NULL, NULL, NULL, NULL) == BUGPACK_ERR_CLOSED);
    }
}

static void *run_thread(void *argument) {
    unsigned number = (unsigned)(uintptr_t)argument;
    for (;;) {
        (void)pthread_barrier_wait(&begins);
        if (is_over) {
            return NULL;
        }
        if (number < writer_count) {
            write_all(number);
        } else if (number < writer_count + trigger_count) {
            trigger();
        } else if (number == writer_count + trigger_count) {
            wait_for_reports();
        } else if (number == writer_count + trigger_count + 1) {
            come_and_go();
        } else {
            close_too();
        }
        (void)pthread_barrier_wait(&ends);
    }
}

static size_t blank(bugpack_direction direction, uint32_t type, void *bytes, size_t byte_count,
                    void *context) {
    (void)direction;
    (void)type;
    memset(bytes, 0, byte_count);
    atomic_fetch_add(&((struct context *)context)->filter_count, 1);
    return byte_count;
}

static bugpack_channel *open_channel(const char *name, bool has_filter) {
    bugpack_channel_options options = BUGPACK_CHANNEL_OPTIONS_INIT;
    options.weight = 2;
    options.filter = has_filter ? blank : NULL;
    options.filter_context = now.context;
    bugpack_channel *channel = NULL;
    CHECK(bugpack_channel_open(now.session, name, &options, &channel, NULL) == BUGPACK_OK);
    return channel;
}

static void open_round(bool is_in_files) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "close";
    options.report_dir = dir.path;
    options.sample_window_ms = 1;
    options.recorder.history_interval_ms = 10;
    options.stacks = is_in_files ? BUGPACK_STACKS_BLOCKED
                                 : BUGPACK_STACKS_NONE; /* the writers run on while they are read */
    options.recorder.log_ring_bytes = 64 * 1024;
    options.recorder.traffic_budget_bytes = 4 << 20;
    options.recorder.dir = dir.path;
    options.recorder.is_in_memory = !is_in_files;
    now = (struct round){.context = calloc(1, sizeof *now.context)};
    CHECK(now.context != NULL);
    CHECK(bugpack_open(&options, &now.session, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < writer_count; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "own-%u", i);
        now.own[i] = open_channel(name, i % 2 == 0);
    }
    now.shared = open_channel("shared", true);
    bugpack_error error = BUGPACK_ERROR_INIT;
    now.stream = bugpack_log_stream(now.session, BUGPACK_LEVEL_INFO, "stream", &error);
    CHECK(now.stream != NULL || error.status == BUGPACK_ERR_UNSUPPORTED);
}

static void run_round(bool is_in_files) {
    open_round(is_in_files);
    atomic_store(&call_count, 0);
    atomic_store(&accepted_count, 0);
    atomic_store(&may_close, false);
    atomic_store(&is_closed, false);
    (void)pthread_barrier_wait(&begins);
    while (!atomic_load(&may_close)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
    bugpack_close(now.session);
    /* From here on a callback or a filter would work with freed memory. */
    unsigned done_count = atomic_load(&now.context->done_count);
    CHECK(atomic_load(&now.context->filter_count) > 0);
    free(now.context);
    atomic_store(&is_closed, true);
    (void)pthread_barrier_wait(&ends);
    CHECK(done_count == atomic_load(&accepted_count));
    bugpack_close(now.session);
    CHECK(now.stream == NULL || fclose(now.stream) == 0);
}

int main(int argument_count, char **arguments) {
    unsigned long round_count = run_length(argument_count, arguments, 4);
    CHECK(temp_dir_make(&dir));
    CHECK(pthread_barrier_init(&begins, NULL, thread_count + 1) == 0);
    CHECK(pthread_barrier_init(&ends, NULL, thread_count + 1) == 0);
    pthread_t threads[thread_count];
    for (uintptr_t i = 0; i < thread_count; i++) {
        CHECK(pthread_create(&threads[i], NULL, run_thread, (void *)i) == 0);
    }
    for (unsigned long i = 0; i < round_count; i++) {
        run_round(i % 2 == 0);
    }
    is_over = true;
    (void)pthread_barrier_wait(&begins);
    for (unsigned i = 0; i < thread_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    (void)pthread_barrier_destroy(&begins);
    (void)pthread_barrier_destroy(&ends);
    (void)printf("%lu closes under load, %u reports waited for\n", round_count,
                 atomic_load(&report_count));
    temp_dir_remove(&dir);
    return 0;
}
