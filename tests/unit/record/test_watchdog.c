/*
 * Watchdogs: a thread that hangs gives one report while it hangs, and its end is told.
 */
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/prctl.h>
#include <sys/ptrace.h>
#endif

#include "base/clock.h"
#include "session/session.h"
#include "support/not_tried.h"
#include "trigger/occasions.h"
#include "trigger/trigger.h"
#include "unit/auto_session.h"

/* What the events of hangs said. The semaphores are raised for each. */
static struct events {
    sem_t written, ended;
    bugpack_event last_end;
} events;

static void on_event(const bugpack_event *event, void *context) {
    if (event->kind == BUGPACK_EVENT_WRITTEN && strcmp(event->report_type, "hang") == 0) {
        (void)sem_post(&events.written);
    } else if (event->kind == BUGPACK_EVENT_HANG_ENDED) {
        events.last_end = *event;
        (void)sem_post(&events.ended);
    }
}

static void open_watched(uint64_t cooldown_ms, uint64_t cap) {
    (void)sem_init(&events.written, 0, 0);
    (void)sem_init(&events.ended, 0, 0);
    options.on_event = on_event;
    options.limits.hang_cooldown_ms = cooldown_ms;
    options.limits.hang_cap = cap;
    open_session();
}

static bugpack_watchdog *open_watchdog(const char *name) {
    bugpack_watchdog *watchdog = NULL;
    cr_assert(zero(int, bugpack_watchdog_open(session, name, 100, &watchdog, NULL)));
    return watchdog;
}

TestSuite(watchdog, .init = auto_setup, .fini = teardown);

Test(watchdog, a_hang_is_reported_while_it_lasts_and_its_end_is_told) {
    open_watched(0, 0);
    bugpack_watchdog *watchdog = open_watchdog("ui");
    (void)sem_wait(&events.written); /* this thread does not beat */
    find_only();
    cr_assert(ne(ptr, strstr(taken.path, "/viewer-hang-ui-20"), NULL), "%s", taken.path);
    static const char *const parts[] = {"\"name\": \"ui\"", "\"limit_ms\": 100",
                                        "\"last_beat\": \"20", "\"hang\": 1",
                                        "\"suppressed_before\": 0"};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cr_assert(holds("hang.json", parts[i]), "%s", parts[i]);
    }
    cr_assert(holds("metadata.json", "\"report_type\": \"hang\""));
    bugpack_watchdog_beat(watchdog);
    (void)sem_wait(&events.ended);
    cr_assert(eq(str, events.last_end.watchdog, "ui"));
    cr_assert(ge(u64, events.last_end.duration_ms, 100));
    cr_assert(eq(u64, events.last_end.ticket, 1));
    bp_trigger_entry entry = auto_count(BP_REPORT_HANG, "ui");
    cr_assert(eq(u64, entry.written_count, 1));
    cr_assert(ge(u64, entry.last_duration_ns, 100 * BP_NS_PER_MS));
    bugpack_watchdog_close(watchdog);
}

Test(watchdog, a_paused_one_does_not_hang) {
    open_watched(BUGPACK_OFF, 0);
    bugpack_watchdog *paused = open_watchdog("paused");
    bugpack_watchdog_pause(paused);
    bugpack_watchdog *hung = open_watchdog("hung");
    (void)sem_wait(&events.written); /* as long as the paused one would have had */
    cr_assert(eq(u64, auto_count(BP_REPORT_HANG, "paused").count, 0));
    cr_assert(eq(u64, auto_count(BP_REPORT_HANG, "hung").count, 1));
    bugpack_watchdog_close(hung); /* which ends the hang */
    (void)sem_wait(&events.ended);
    cr_assert(eq(str, events.last_end.watchdog, "hung"));
    bugpack_watchdog_beat(paused);
    (void)sem_wait(&events.written); /* now something is expected of it */
    bugpack_close(session);
    bugpack_watchdog_beat(paused); /* does nothing */
    bugpack_watchdog_close(paused);
}

#ifdef __linux__
static void *open_elsewhere(void *context) {
    return open_watchdog("hung");
}

Test(watchdog, a_thread_that_a_debugger_has_does_not_hang) {
    open_watched(BUGPACK_OFF, 0);
    int traced[2];
    cr_assert(zero(int, pipe(traced)));
    pid_t parent = getpid();
    (void)prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY);
    pid_t tracer = fork();
    if (tracer == 0) {
        bool is_allowed = ptrace(PTRACE_SEIZE, parent, NULL, NULL) == 0;
        (void)!write(traced[1], &is_allowed, sizeof is_allowed);
        for (;;) {
            (void)pause();
        }
    }
    bool is_allowed = false;
    cr_assert(eq(sz, (size_t)read(traced[0], &is_allowed, sizeof is_allowed), sizeof is_allowed));
    if (is_allowed) {
        pthread_t other;
        /* Its limit is longer than the tracer needs to end. */
        bugpack_watchdog *watchdog = NULL;
        cr_assert(zero(int, bugpack_watchdog_open(session, "traced", 5000, &watchdog, NULL)));
        cr_assert(zero(int, pthread_create(&other, NULL, open_elsewhere, session)));
        (void)sem_wait(&events.written);
        cr_expect(zero(u64, auto_count(BP_REPORT_HANG, "traced").count));
        cr_expect(eq(u64, auto_count(BP_REPORT_HANG, "hung").count, 1));
        cr_assert(zero(int, pthread_join(other, NULL)));
    }
    /* When the debugger goes, the thread has all of its limit again. */
    void *self = session->triggers.watchdog;
    uint64_t ahead_ns = bp_clock_monotonic_ns();
    for (int i = 0; i < 2000; i++) {
        (void)bp_trigger_watchdog.tick(self, ahead_ns += BP_NS_PER_SEC);
    }
    (void)kill(tracer, SIGKILL);
    (void)waitpid(tracer, NULL, 0);
    (void)bp_trigger_watchdog.tick(self, ahead_ns);
    cr_expect(zero(u64, auto_count(BP_REPORT_HANG, "traced").count));
    bugpack_close(session);
    if (!is_allowed) {
        not_tried("no process may be traced here");
    }
}
#endif

Test(watchdog, time_in_which_nobody_could_run_is_no_hang) {
    open_watched(BUGPACK_OFF, 0);
    bugpack_watchdog *watchdog = NULL;
    cr_assert(zero(int, (int)bugpack_watchdog_open(session, "ui", 60000, &watchdog, NULL)));
    void *self = session->triggers.watchdog;
    uint64_t now_ns = bp_clock_monotonic_ns();
    (void)bp_trigger_watchdog.tick(self, now_ns); /* the monitor has not slept for ever */
    now_ns += 3600 * BP_NS_PER_SEC;
    uint64_t next_ns = bp_trigger_watchdog.tick(self, now_ns);
    cr_expect(zero(u64, auto_count(BP_REPORT_HANG, "ui").count));
    /* The monitor's own looks count a quarter twice. */
    while (auto_count(BP_REPORT_HANG, "ui").count == 0 && next_ns < now_ns + 61 * BP_NS_PER_SEC) {
        next_ns = bp_trigger_watchdog.tick(self, next_ns);
    }
    cr_expect(eq(u64, auto_count(BP_REPORT_HANG, "ui").count, 1));
    cr_expect(ge(u64, next_ns - now_ns, 45 * BP_NS_PER_SEC));
}

Test(watchdog, one_over_the_limit_of_a_day_is_counted) {
    const struct timespec pause = {.tv_nsec = 1000000};
    options.limits.per_signature = 1;
    open_watched(BUGPACK_OFF, BUGPACK_OFF);
    bugpack_watchdog *watchdog = open_watchdog("ui");
    (void)sem_wait(&events.written);
    bugpack_watchdog_beat(watchdog); /* and then it hangs again */
    while (auto_count(BP_REPORT_HANG, "ui").reason == NULL) {
        (void)nanosleep(&pause, NULL);
    }
    bp_trigger_entry entry = auto_count(BP_REPORT_HANG, "ui");
    cr_expect(eq(str, (char *)entry.reason,
                 "as many reports of it as limits.per_signature allows were taken that day"));
    cr_expect(eq(u64, entry.written_count, 1));
    cr_expect(ge(u64, entry.count, 2));
    bugpack_watchdog_close(watchdog);
}

Test(watchdog, one_within_the_cool_down_or_over_the_cap_is_counted) {
    static const struct {
        uint64_t cooldown_ms, cap;
        const char *reason;
    } cases[] = {{0, 0, "a hang report was taken shortly before"},
                 {BUGPACK_OFF, 1, "as many hang reports as hang_cap allows were taken"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        open_watched(cases[i].cooldown_ms, cases[i].cap);
        bugpack_watchdog *watchdog = open_watchdog("ui");
        (void)sem_wait(&events.written);
        for (uint64_t count = 2; count <= 3; count++) {
            bugpack_watchdog_beat(watchdog);
            (void)sem_wait(&events.ended);
            while (auto_count(BP_REPORT_HANG, "ui").count < count) {
                (void)usleep(1000);
            }
        }
        bp_trigger_entry entry = auto_count(BP_REPORT_HANG, "ui");
        cr_assert(eq(u64, entry.written_count, 1));
        cr_assert(eq(str, entry.reason, cases[i].reason));
        bugpack_close(session);
    }
}

Test(watchdog, refuses_what_it_cannot_watch) {
    open_watched(0, 0);
    bugpack_watchdog *all[BUGPACK_WATCHDOGS_MAX], *more = NULL;
    char name[BUGPACK_CHANNEL_MAX_BYTES + 2] = "";
    memset(name, 'x', sizeof name - 1);
    static const struct {
        const char *name;
        uint32_t limit_ms;
    } wrong[] = {{NULL, 1000}, {"", 1000}, {"ui", 0}, {"ui", 99}, {"ui", 86400001}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        cr_assert(eq(
            int, (int)bugpack_watchdog_open(session, wrong[i].name, wrong[i].limit_ms, &more, NULL),
            BUGPACK_ERR_INVALID));
    }
    cr_assert(
        eq(int, bugpack_watchdog_open(session, name, 1000, &more, NULL), BUGPACK_ERR_INVALID));
    for (size_t i = 0; i < BUGPACK_WATCHDOGS_MAX; i++) {
        cr_assert(zero(int, bugpack_watchdog_open(session, "ui", 86400000, &all[i], NULL)));
    }
    cr_assert(eq(int, bugpack_watchdog_open(session, "ui", 1000, &more, NULL), BUGPACK_ERR_LIMIT));
    bugpack_watchdog_close(all[0]);
    cr_assert(zero(int, bugpack_watchdog_open(session, "ui", 86400000, &more, NULL)));
    bugpack_watchdog_beat(NULL);
    bugpack_watchdog_pause(NULL);
    bugpack_watchdog_close(NULL);
    bugpack_close(session);
    cr_assert(eq(int, bugpack_watchdog_open(session, "ui", 1000, &more, NULL), BUGPACK_ERR_CLOSED));
}

TestSuite(occasions, .init = auto_setup, .fini = teardown);

Test(occasions, pending_reports_count_against_the_cap) {
    const bp_occasions_rule rule = {
        .kind = BP_REPORT_HANG, .rate.cap = 2, .count_reason = "there are two"};
    const bp_report_context context = {.config = NULL};
    uint64_t suppressed = 0;
    bp_occasions *occasions = bp_occasions_new(sizeof *occasions, &context, &rule, NULL);
    cr_assert(ne(ptr, occasions, NULL));
    cr_expect(bp_occasions_begin(occasions, "a", &suppressed));
    cr_expect(bp_occasions_begin(occasions, "b", &suppressed));
    cr_expect(not(bp_occasions_begin(occasions, "c", &suppressed)));
    bp_occasions_end(occasions, "a", 0, BUGPACK_ERR_IO);
    cr_expect(bp_occasions_begin(occasions, "c", &suppressed), "a failed one takes no place");
    cr_expect(eq(u64, suppressed, 2));
    bp_occasions_note_duration(occasions, "a", 2);
    bp_occasions_note_duration(occasions, "a", 1);
    bp_trigger_list list = {.entries = NULL};
    cr_assert(zero(int, bp_occasions_list(occasions, NULL, NULL, &list, NULL)));
    cr_expect(eq(u64, list.entries[0].last_duration_ns, 1));
    cr_expect(eq(u64, list.entries[0].longest_duration_ns, 2));
    bp_trigger_list_release(&list);
    bp_occasions_free(occasions);
}
