/*
 * Everything that triggers without a person, at once: the clock, disconnects from several threads,
 * watchdogs, rings that are kept and reported, beside ordinary reports and traffic; and then the
 * close. Afterwards no directory is over its bounds. Run under ThreadSanitizer too.
 */
#include <bugpack/bugpack.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { thread_count = 3, turn_count = 15, loss_count = 100, rolling_max = 4, all_max = 12 };

static bugpack_session *session;
static bugpack_channel *channel;
static atomic_bool must_stop;
static atomic_uint disconnect_count, kept_count, refused_count;

static void *make_traffic(void *unused) {
    (void)unused;
    while (!atomic_load(&must_stop)) {
        bugpack_traffic(channel, BUGPACK_SENT, 1, "ping", "ping", 4);
        bugpack_log(session, BUGPACK_LEVEL_DEBUG, "main", "ping");
    }
    return NULL;
}

static void *lose_connections(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < loss_count; i++) {
        bugpack_status status =
            bugpack_disconnect(session, i % 2 == 0 ? "main" : "display", "gone", NULL, NULL);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY);
        atomic_fetch_add(&disconnect_count, status == BUGPACK_OK);
        (void)usleep(2000);
    }
    return NULL;
}

static atomic_uint condition_count;

static void on_event(const bugpack_event *event, void *context) {
    (void)context;
    atomic_fetch_add(&condition_count, event->kind == BUGPACK_EVENT_WRITTEN &&
                                           strcmp(event->report_type, "condition") == 0);
}

/* Adds conditions while they are looked at, and logs what one is about, until a report of it. */
static void *wait_for_conditions(void *unused) {
    static const char *const texts[] = {"log /turn \\d+/", "fds > 0", "threads grows 1 in 1min",
                                        "cpu > 1 for 300ms", "rss < 1K"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        CHECK(bugpack_condition_add(session, texts[i], NULL) == BUGPACK_OK);
    }
    for (unsigned i = 0; i < turn_count || atomic_load(&condition_count) == 0; i++) {
        bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "turn %u", i);
        (void)usleep(1000);
    }
    return unused;
}

/* Hangs, beats and ends, while another one is opened and closed. */
static void *hang_and_beat(void *unused) {
    (void)unused;
    bugpack_watchdog *watchdog = NULL, *other = NULL;
    CHECK(bugpack_watchdog_open(session, "ui", 100, &watchdog, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < turn_count; i++) {
        CHECK(bugpack_watchdog_open(session, "other", 100, &other, NULL) == BUGPACK_OK);
        (void)usleep(i % 3 == 0 ? 200000 : 1000);
        bugpack_watchdog_beat(watchdog);
        bugpack_watchdog_close(other);
    }
    bugpack_watchdog_pause(watchdog);
    return NULL; /* the session closes it */
}

static void *keep_and_report(void *unused) {
    (void)unused;
    for (unsigned i = 0; i < turn_count; i++) {
        bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
        bugpack_notify(session, BUGPACK_LEVEL_WARN, "server", &request.retained, "turn %u", i);
        if (request.retained == 0) {
            atomic_fetch_add(&refused_count, 1); /* the freezer has enough to do */
        } else {
            /* NO_TICKET: newer ones took its place already. */
            bugpack_status status = bugpack_report(session, &request, NULL, NULL);
            CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY ||
                  status == BUGPACK_ERR_NO_TICKET);
            atomic_fetch_add(&kept_count, status == BUGPACK_OK);
        }
    }
    return NULL;
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "stress";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.history_interval_ms = 5;
    options.stacks = BUGPACK_STACKS_NONE; /* a tenth of a second for each report */
    options.recorder.is_in_memory = true;
    options.recorder.log_ring_bytes = 64 * 1024;
    options.recorder.traffic_budget_bytes = 1 << 20;
    options.auto_snapshot.interval_ms = 3;
    options.auto_snapshot.max_count = rolling_max;
    options.limits.report_dir_max_count = all_max;
    options.limits.disconnect_cooldown_ms = 5;
    options.limits.disconnect_cap = BUGPACK_OFF;
    options.limits.hang_cooldown_ms = 5;
    options.limits.hang_cap = BUGPACK_OFF;
    options.limits.condition_cooldown_ms = 5;
    options.limits.condition_cap = BUGPACK_OFF;
    options.limits.per_signature = BUGPACK_OFF;
    options.on_event = on_event;
    options.limits.min_free_bytes = BUGPACK_OFF;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_channel_open(session, "main", NULL, &channel, NULL) == BUGPACK_OK);

    pthread_t traffic, losing[thread_count], keeping[thread_count], hanging[thread_count];
    pthread_t waiting[thread_count];
    CHECK(pthread_create(&traffic, NULL, make_traffic, NULL) == 0);
    for (unsigned i = 0; i < thread_count; i++) {
        CHECK(pthread_create(&losing[i], NULL, lose_connections, NULL) == 0);
        CHECK(pthread_create(&keeping[i], NULL, keep_and_report, NULL) == 0);
        CHECK(pthread_create(&hanging[i], NULL, hang_and_beat, NULL) == 0);
        CHECK(pthread_create(&waiting[i], NULL, wait_for_conditions, NULL) == 0);
    }
    for (unsigned i = 0; i < thread_count; i++) {
        CHECK(pthread_join(losing[i], NULL) == 0);
        CHECK(pthread_join(keeping[i], NULL) == 0);
        CHECK(pthread_join(hanging[i], NULL) == 0);
        CHECK(pthread_join(waiting[i], NULL) == 0);
    }
    atomic_store(&must_stop, true);
    CHECK(pthread_join(traffic, NULL) == 0);
    uint64_t retained = 0;
    bugpack_notify(session, BUGPACK_LEVEL_WARN, NULL, &retained,
                   "kept, and then nobody asks for it");
    bugpack_close(session);

    CHECK(atomic_load(&disconnect_count) > 0 && atomic_load(&kept_count) > 0);
    temp_dir rolling = {.fd = openat(dir.fd, "auto-snapshots", O_RDONLY | O_CLOEXEC)};
    CHECK(rolling.fd >= 0);
    size_t snapshot_count = temp_dir_count(&rolling);
    CHECK(snapshot_count > 0 && snapshot_count <= rolling_max);
    CHECK(temp_dir_count(&dir) <= all_max + 1); /* and the rolling directory */
    (void)close(rolling.fd);
    printf("%u disconnect reports, %u of kept rings, %u not kept\n", atomic_load(&disconnect_count),
           atomic_load(&kept_count), atomic_load(&refused_count));
    temp_dir_remove(&dir);
    return 0;
}
