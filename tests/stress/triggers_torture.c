/*
 * Every allocation of opening a session, and of a report that takes itself, fails in turn, alone
 * and with all that follow: of a gap, a disconnect and rings that are kept. Nothing crashes, hangs
 * or is left behind, and what could not be written has used nothing up: the next sight gives the
 * report.
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/descriptors.h"
#include "support/failing_malloc.h"
#include "support/temp_dir.h"

enum { limit_secs = 120, each_until = 120, stride = 29 };

static temp_dir dir;
static bugpack_session *session;
static atomic_uint ended_count, written_count;

static void on_event(const bugpack_event *event, void *context) {
    (void)context;
    atomic_fetch_add(&written_count, event->kind == BUGPACK_EVENT_WRITTEN);
    atomic_fetch_add(&ended_count, event->kind >= BUGPACK_EVENT_WRITTEN);
}

static void nap(void) {
    (void)nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
}

static void wait_for_end(unsigned count) {
    while (atomic_load(&ended_count) < count) {
        nap();
    }
}

static bugpack_options host_options(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "torture";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.recorder.is_in_memory = true;
    options.recorder.log_ring_bytes = 8192;
    options.recorder.traffic_budget_bytes = 65536;
    options.limits.provider_timeout_ms = 60000;
    options.limits.min_free_bytes = BUGPACK_OFF;
    options.limits.per_signature = BUGPACK_OFF; /* each is taken many times */
    options.stacks = BUGPACK_STACKS_NONE;   /* libdw crashes where an allocation of its own fails */
    options.without_entries = "files.json"; /* it looks at every process */
    options.redaction.mode = BUGPACK_REDACT_NEVER; /* redact_torture */
    options.pedantic.is_enabled = true;
    options.on_event = on_event;
    return options;
}

static void open_session(void) {
    bugpack_channel *channel = NULL;
    bugpack_options options = host_options();
    atomic_store(&ended_count, 0);
    atomic_store(&written_count, 0);
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(session, "display", NULL, &channel, NULL) == BUGPACK_OK);
    bugpack_traffic(channel, BUGPACK_RECEIVED, 1, "draw", "draw", 4);
}

static int write_state(bugpack_writer *writer, void *context) {
    (void)context;
    return (int)bugpack_printf(writer, "{\"depth\": %u}", 24u);
}

/* The table of gaps is told of an end before the host is. */
static void wait_for_gap(void) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    do {
        nap();
        CHECK(bugpack_pedantic_get(session, &state, NULL) == BUGPACK_OK);
    } while (state.pending_count > 0);
    while (atomic_load(&written_count) < state.written_count) {
        nap();
    }
}

static void see_gap(void) {
    bugpack_gap_with_state(session, "display:unimpl:draw", write_state, NULL);
    wait_for_gap();
}

static void see_unknown(void) {
    bugpack_gap_unknown(session, "display", 7, "message", 7);
    wait_for_gap();
}

static void disconnect(void) {
    unsigned before = atomic_load(&ended_count);
    bugpack_status status = bugpack_disconnect(session, "display", "ECONNRESET", NULL, NULL);
    CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_NO_MEMORY || status == BUGPACK_ERR_BUSY);
    if (status == BUGPACK_OK) {
        wait_for_end(before + 1);
    }
}

/* Once there is a number, only a report that is written uses it up; or (NO_TICKET) the rings could
 * not be copied, which the log tells: then they are retained anew. */
static void keep_and_report(void) {
    static const bugpack_session *kept_in;
    static uint64_t retained;
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_status status = BUGPACK_ERR_NO_TICKET;
    for (unsigned i = 0; i < 2 && status == BUGPACK_ERR_NO_TICKET; i++) {
        if (kept_in != session || retained == 0) {
            bugpack_notify(session, BUGPACK_LEVEL_WARN, "server", &retained, "no memory");
        }
        kept_in = session;
        request.retained = retained;
        status =
            retained == 0 ? BUGPACK_ERR_NO_MEMORY : bugpack_report(session, &request, NULL, NULL);
        retained = status == BUGPACK_ERR_NO_MEMORY ? retained : 0;
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_NO_MEMORY ||
              status == BUGPACK_ERR_NO_TICKET);
    }
    kept_in = status == BUGPACK_OK ? NULL : kept_in;
}

/* Removes what a session left: one report, and of gaps the summary. */
static void clear_directory(bool has_summary) {
    DIR *listing = opendir(dir.path);
    unsigned zips = 0, summaries = 0;
    CHECK(listing != NULL);
    for (struct dirent *entry = readdir(listing); entry != NULL; entry = readdir(listing)) {
        if (entry->d_name[0] != '.') {
            zips += strstr(entry->d_name, ".zip") != NULL;
            summaries += strstr(entry->d_name, ".json") != NULL;
            CHECK(unlinkat(dir.fd, entry->d_name, 0) == 0);
        }
    }
    (void)closedir(listing);
    CHECK(zips == 1 && summaries == has_summary);
    CHECK(temp_dir_count(&dir) == 0);
}

static void fail_each(const char *name, void (*trigger)(void), bool has_summary,
                      bool and_all_later) {
    unsigned descriptors = count_entries("/proc/self/fd");
    unsigned threads = count_entries("/proc/self/task");
    unsigned failed = 0, written = 0;
    unsigned long tried, nth = 0;
    do {
        nth += nth < each_until ? 1 : stride;
        (void)alarm(limit_secs); /* a deadlock ends the test by SIGALRM */
        open_session();
        failing_malloc_arm(nth, and_all_later);
        trigger();
        tried = failing_malloc_disarm();
        if (atomic_load(&written_count) == 0) {
            failed++;
            trigger();
            if (atomic_load(&written_count) == 0) {
                /* The snapshot that it borrowed was the one that failed, which shows only now. */
                trigger();
            }
            CHECK(atomic_load(&written_count) == 1);
        } else {
            written++;
        }
        bugpack_close(session);
        clear_directory(has_summary);
        CHECK(count_entries("/proc/self/fd") == descriptors);
        expect_threads(threads);
    } while (tried >= nth);
    (void)alarm(0);
    CHECK(failed > 20 && written > 0);
    (void)printf("%s, %s: %u failed and were tried again, %u written\n", name,
                 and_all_later ? "one and all later" : "one allocation", failed, written);
}

/* A session that cannot be opened has a sentence, and leaves nothing. */
static void fail_to_open(bool and_all_later) {
    unsigned descriptors = count_entries("/proc/self/fd");
    unsigned threads = count_entries("/proc/self/task");
    unsigned refused = 0;
    unsigned long tried, nth = 0;
    bugpack_options options = host_options();
    options.recorder.is_in_memory = false;
    do {
        bugpack_session *opened = NULL;
        bugpack_error error = BUGPACK_ERROR_INIT;
        (void)alarm(limit_secs);
        failing_malloc_arm(++nth, and_all_later);
        bugpack_status status = bugpack_open(&options, &opened, &error);
        tried = failing_malloc_disarm();
        refused += status != BUGPACK_OK;
        CHECK(status == BUGPACK_OK || (opened == NULL && error.status == status));
        CHECK(status == BUGPACK_OK || error.message[0] != '\0');
        bugpack_close(opened);
        CHECK(temp_dir_count(&dir) == 0 && count_entries("/proc/self/fd") == descriptors);
        expect_threads(threads);
    } while (tried >= nth);
    CHECK(refused > 5);
    (void)printf("a session: %u of %lu not opened\n", refused, nth);
}

/* Each allocation of a condition fails in turn: it is refused, and nothing is left of it. */
static void add_conditions(void) {
    static const char *const texts[] = {"log /x(y|z)/", "rss grows 1G in 1h", "fds > 900000"};
    open_session();
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        bugpack_status status = BUGPACK_ERR_NO_MEMORY;
        unsigned long nth = 0;
        for (; status != BUGPACK_OK; nth++) {
            failing_malloc_arm(nth + 1, nth % 2 == 0);
            status = bugpack_condition_add(session, texts[i], NULL);
            (void)failing_malloc_disarm();
            CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_NO_MEMORY);
        }
        (void)printf("a condition: %lu failed and were tried again\n", nth - 1);
    }
    bugpack_close(session);
    CHECK(temp_dir_count(&dir) == 0);
}

int main(void) {
    static const struct {
        const char *name;
        void (*trigger)(void);
        bool has_summary;
    } triggers[] = {{"a gap", see_gap, true},
                    {"an unknown message", see_unknown, true},
                    {"a disconnect", disconnect, false},
                    {"kept rings", keep_and_report, false}};
    CHECK(temp_dir_make(&dir));
    fail_to_open(false);
    fail_to_open(true);
    add_conditions();
    for (size_t i = 0; i < sizeof triggers / sizeof triggers[0]; i++) {
        fail_each(triggers[i].name, triggers[i].trigger, triggers[i].has_summary, false);
        fail_each(triggers[i].name, triggers[i].trigger, triggers[i].has_summary, true);
    }
    temp_dir_remove(&dir);
    return 0;
}
