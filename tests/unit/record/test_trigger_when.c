/*
 * bugpack_condition_add in a host: a report when something becomes true of this process.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "report/queue.h"
#include "session/command.h"
#include "session/session.h"
#include "trigger/trigger.h"
#include "unit/auto_session.h"

/* Raised for each condition that has become true, and for each report of one. */
static struct events {
    sem_t found, written;
    bool has_report;
    unsigned told_loss_count;
    bp_condition_truth truth;
} events;

static void on_diagnostic(bugpack_level level, const char *text, void *context) {
    events.told_loss_count += strstr(text, "conditions did not see at least") != NULL;
}

static void on_event(const bugpack_event *event, void *context) {
    if (event->kind == BUGPACK_EVENT_WRITTEN && strcmp(event->report_type, "condition") == 0) {
        (void)sem_post(&events.written);
    }
}

static void on_truth(const bp_condition_truth *truth, bool has_report, void *context) {
    events.truth = *truth;
    events.has_report = has_report;
    (void)sem_post(&events.found);
}

static void open_watched(uint64_t cooldown_ms, uint64_t cap) {
    (void)sem_init(&events.found, 0, 0);
    (void)sem_init(&events.written, 0, 0);
    options.recorder.history_interval_ms = BUGPACK_OFF; /* none is needed */
    options.recorder.log_ring_bytes = 64 << 10;
    options.on_event = on_event;
    options.on_diagnostic = on_diagnostic;
    options.limits.condition_cooldown_ms = cooldown_ms;
    options.limits.condition_cap = cap;
    open_session();
    bp_session_tell_conditions(session, on_truth, NULL);
}

static void watch(const char *text) {
    cr_assert(zero(int, bugpack_condition_add(session, text, &failure)), "%s", failure.message);
}

TestSuite(trigger_when, .init = auto_setup, .fini = teardown);

Test(trigger_when, a_report_says_which_condition_and_by_which_value) {
    open_watched(0, 0);
    watch("rss < 1K");
    watch("threads > 1");
    (void)sem_wait(&events.written);
    find_only();
    cr_assert(ne(ptr, strstr(taken.path, "/viewer-condition-threads-20"), NULL), "%s", taken.path);
    static const char *const parts[] = {"\"report_type\": \"condition\"",
                                        "\"text\": \"threads > 1\"", "\"unit\": \"count\""};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        cr_assert(holds("metadata.json", parts[i]), "%s", parts[i]);
    }
    cr_assert(holds("logs.jsonl", "condition \\\"threads > 1\\\" is true: "));
    cr_assert(eq(u64, auto_count(BP_REPORT_CONDITION, "threads > 1").written_count, 1));
}

static void open_files(int fds[64]) {
    for (size_t i = 0; i < 64; i++) {
        fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
    }
}

static void close_files(const int fds[64]) {
    for (size_t i = 0; i < 64; i++) {
        (void)close(fds[i]);
    }
}

Test(trigger_when, descriptors_are_counted) {
    int fds[64];
    open_watched(0, 0);
    watch("fds grows 40 in 1min");
    watch("threads > 0"); /* which the first sample shows: what follows has a base */
    (void)sem_wait(&events.found);
    open_files(fds);
    (void)sem_wait(&events.found);
    cr_assert(eq(str, events.truth.text, "fds grows 40 in 1min"));
    cr_assert(ge(dbl, events.truth.value, 40));
    cr_assert(not(events.has_report), "the cool-down is of all together");
    close_files(fds);
}

/* Keeps a processor and descriptors busy, as a report itself may. */
static int work_until_told(bugpack_writer *writer, void *may_end) {
    int fds[64];
    open_files(fds);
    while (!atomic_load((atomic_bool *)may_end)) {}
    close_files(fds);
    return bugpack_write(writer, "x", 1);
}

static void say_and_wait(const char *word) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "%s", word);
    do {
        (void)sem_wait(&events.found);
    } while (strstr(events.truth.text, word) == NULL);
}

Test(trigger_when, a_report_is_no_load_of_the_host) {
    static const char cpu[] = "cpu > 50", files[] = "fds grows 40 in 1h";
    static atomic_bool may_end;
    int fds[64];
    options.limits.provider_timeout_ms = 60000;
    open_watched(BUGPACK_OFF, BUGPACK_OFF);
    watch(cpu);
    watch(files);
    watch("rss > 0");
    (void)sem_wait(&events.written); /* of a look that the others have had, too */
    cr_assert(zero(int, bugpack_provide(session, "work.txt", BUGPACK_PROVIDE_TEXT, work_until_told,
                                        &may_end, &failure)));
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, &failure)));
    /* Each is found in another look, and the looks before it are over. */
    static const char *const words[] = {"one", "two", "three", "four"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char text[32];
        (void)snprintf(text, sizeof text, "log /%s/", words[i]);
        watch(text);
        say_and_wait(words[i]);
    }
    cr_assert(zero(u64, auto_count(BP_REPORT_CONDITION, files).count));
    cr_assert(zero(u64, auto_count(BP_REPORT_CONDITION, cpu).count));
    atomic_store(&may_end, true);
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, &failure)));
    open_files(fds); /* the host's own count */
    while (auto_count(BP_REPORT_CONDITION, files).count == 0) {
        (void)usleep(1000);
    }
    close_files(fds);
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, &failure)));
}

static void do_nothing(bp_job *job, bp_runner *runner) {
}

static bool is_load(const bp_job_type *type) {
    bp_job_queue *jobs = session->context.jobs;
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, &failure)));
    (void)bp_job_queue_has_worked(jobs); /* what was before */
    cr_assert(zero(
        int, bp_job_queue_submit(jobs, bp_job_new(&session->context, type, 0), NULL, &failure)));
    cr_assert(zero(int, bugpack_flush(session, BUGPACK_OFF, &failure)));
    return bp_job_queue_has_worked(jobs);
}

/* A host whose tags change keeps them each second, as often as it is looked. */
Test(trigger_when, what_is_kept_for_a_crash_is_no_load) {
    static const bp_job_type keeps = {.yields = true, .run = do_nothing},
                             recovers = {.run = do_nothing};
    open_watched(BUGPACK_OFF, BUGPACK_OFF);
    cr_assert(is_load(&recovers));
    cr_assert(not(is_load(&keeps)));
}

Test(trigger_when, a_log_record_after_it_counts_and_none_before) {
    static const char lost[] = "log /connection .+ lost/", sentinel[] = "log /sentinel/";
    open_watched(BUGPACK_OFF, 2);
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "connection 1 lost");
    watch(lost);
    watch(sentinel);
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "connection 2 lost");
    (void)sem_wait(&events.written);
    cr_assert(eq(u64, events.truth.log_sequence, 2));
    bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "sentinel");
    while (auto_count(BP_REPORT_CONDITION, sentinel).count == 0) {
        (void)usleep(1000);
    }
    cr_assert(eq(u64, auto_count(BP_REPORT_CONDITION, lost).count, 1), "but for our own records");
    /* Over the cap a match is counted. */
    for (uint64_t count = 2; count <= 3; count++) {
        (void)sem_wait(&events.found);
        bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "connection 3 lost");
        while (auto_count(BP_REPORT_CONDITION, lost).count < count) {
            (void)usleep(1000);
        }
    }
}

Test(trigger_when, records_that_were_overwritten_are_said_once_to_be_unseen) {
    open_watched(0, 0);
    watch("log /needle/");
    bugpack_log(session, BUGPACK_LEVEL_INFO, "a", "needle");
    (void)sem_wait(&events.written);
    (void)sem_wait(&events.found);
    for (int round = 0; round < 2; round++) {
        /* In the middle of a tick of the monitor there may be some that it did see. */
        for (int i = 0; i < 20000; i++) {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "a", "%0500d", i);
        }
        bugpack_log(session, BUGPACK_LEVEL_INFO, "a", "another needle");
        (void)sem_wait(&events.found);
        cr_assert(not(events.has_report));
    }
    bugpack_close(session);
    cr_assert(eq(uint, events.told_loss_count, 1));
}

/* The monitor may look between two records, but hardly each time. */
Test(trigger_when, of_several_records_in_one_look_one_counts) {
    static const char hit[] = "log /hit/", sentinel[] = "log /sentinel/";
    open_watched(BUGPACK_OFF, 1);
    watch(hit);
    watch(sentinel);
    uint64_t least = UINT64_MAX;
    for (uint64_t round = 1; round <= 3 && least > 1; round++) {
        uint64_t before = auto_count(BP_REPORT_CONDITION, hit).count;
        for (int i = 0; i < 3; i++) {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "hit");
        }
        bugpack_log(session, BUGPACK_LEVEL_INFO, "net", "sentinel");
        while (auto_count(BP_REPORT_CONDITION, sentinel).count < round) {
            (void)usleep(1000);
        }
        uint64_t counted = auto_count(BP_REPORT_CONDITION, hit).count - before;
        least = counted < least ? counted : least;
    }
    cr_assert(eq(u64, least, 1));
}

Test(trigger_when, refuses_what_it_cannot_look_at) {
    options.without_process = true;
    options.recorder.log_ring_bytes = BUGPACK_OFF;
    open_session();
    static const char *const impossible[] = {"rss > 1G", "log /x/", "no such thing", NULL};
    for (size_t i = 0; i < sizeof impossible / sizeof impossible[0]; i++) {
        cr_assert(
            eq(int, bugpack_condition_add(session, impossible[i], &failure), BUGPACK_ERR_INVALID));
    }
    bugpack_close(session);
    options.without_process = false;
    open_watched(0, 0);
    for (size_t i = 0; i < BUGPACK_CONDITIONS_MAX; i++) {
        watch("rss > 1000G");
    }
    cr_assert(eq(int, bugpack_condition_add(session, "rss > 1000G", &failure), BUGPACK_ERR_LIMIT));
    cr_assert(eq(int, bugpack_condition_add(NULL, "rss > 1000G", &failure), BUGPACK_ERR_INVALID));
    bugpack_close(session);
    cr_assert(eq(int, bugpack_condition_add(session, "rss > 1000G", &failure), BUGPACK_ERR_CLOSED));
}

Test(trigger_when, leaves_the_error_alone_where_it_succeeds) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    pid_t child = fork();
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    options.target_pid = child;
    options.recorder.history_interval_ms = 60000;
    open_session();
    (void)kill(child, SIGKILL);
    cr_assert(eq(int, waitpid(child, NULL, 0), child));
    cr_assert(zero(int, bugpack_condition_add(session, "log /x/", &error)));
    cr_expect(eq(int, error.status, BUGPACK_OK), "%s", error.message);
}
