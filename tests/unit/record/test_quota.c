/*
 * limits.per_signature: the automatic reports of one bug that a day may have in a directory.
 */
#include <fcntl.h>
#include <semaphore.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "report/quota.h"
#include "unit/pedantic_session.h"

TestSuite(quota, .init = pedantic_setup, .fini = teardown);

static const uint64_t today_ns = (uint64_t)20000 * 86400 * BP_NS_PER_SEC + 5;
static const uint64_t day_ns = (uint64_t)86400 * BP_NS_PER_SEC;

static int dir_fd;
static uint64_t suppressed_count;

static bool ask(const char *key, uint32_t max_count, uint64_t wall_ns) {
    dir_fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bp_quota quota = {dir_fd, "viewer", BP_REPORT_HANG, key, wall_ns};
    bool is_taken = bp_quota_take(&quota, max_count, &suppressed_count);
    (void)close(dir_fd);
    return is_taken;
}

Test(quota, counts_each_bug_of_each_day_and_says_what_it_suppressed) {
    cr_expect(ask("ui", 2, today_ns));
    cr_expect(ask("ui", 2, today_ns + 60 * BP_NS_PER_SEC));
    cr_expect(zero(u64, suppressed_count));
    cr_expect(not(ask("ui", 2, today_ns)));
    cr_expect(not(ask("ui", 2, today_ns)));
    cr_expect(ask("net", 2, today_ns));
    cr_expect(zero(u64, suppressed_count));
    cr_expect(ask("ui", 2, today_ns + day_ns));
    cr_expect(eq(u64, suppressed_count, 2));
    cr_expect(ask("ui", 2, today_ns + day_ns));
    cr_expect(zero(u64, suppressed_count));
    cr_expect(not(ask("ui", 2, today_ns + day_ns)));
    /* The clock was set back: that is another day too. */
    cr_expect(ask("ui", 2, today_ns));
}

Test(quota, gets_back_what_was_not_written) {
    cr_expect(ask("ui", 1, today_ns));
    cr_expect(not(ask("ui", 1, today_ns)));
    cr_expect(ask("ui", 1, today_ns + day_ns));
    int fd = open(dir.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    const bp_quota quota = {fd, "viewer", BP_REPORT_HANG, "ui", today_ns + day_ns};
    bp_quota_give_back(&quota, suppressed_count);
    (void)close(fd);
    cr_expect(ask("ui", 1, today_ns + day_ns));
    cr_expect(eq(u64, suppressed_count, 1));
}

Test(quota, of_too_many_bugs_forgets_the_one_of_the_oldest_day) {
    char key[16];
    cr_expect(ask("first", 1, today_ns));
    for (int i = 1; i < BP_QUOTA_ROW_MAX; i++) {
        (void)snprintf(key, sizeof key, "%d", i);
        cr_assert(ask(key, 1, today_ns + day_ns));
    }
    cr_expect(ask("last", 1, today_ns + day_ns));
    cr_expect(not(ask("255", 1, today_ns + day_ns)));
    cr_expect(ask("first", 1, today_ns), "it was forgotten");
}

Test(quota, is_shared_by_processes) {
    enum { process_count = 8, ask_count = 50, max_count = 7 };
    int taken_count = 0;
    for (int i = 0; i < process_count; i++) {
        if (fork() == 0) {
            int own_count = 0;
            for (int j = 0; j < ask_count; j++) {
                own_count += ask("ui", max_count, today_ns);
            }
            _exit(own_count);
        }
    }
    for (int i = 0, status; i < process_count && wait(&status) > 0; i++) {
        taken_count += WEXITSTATUS(status);
    }
    /* Who waited in vain for the lock may write its report. */
    cr_expect(ge(int, taken_count, max_count));
    cr_expect(not(ask("ui", max_count, today_ns)));
    cr_expect(ask("ui", max_count, today_ns + day_ns));
    cr_expect(le(u64, suppressed_count, process_count * ask_count - max_count + 1));
}

Test(quota, suppresses_nothing_where_its_file_cannot_be_used) {
    char path[600];
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, BP_QUOTA_NAME);
    cr_assert(zero(int, symlink("elsewhere", path)));
    cr_expect(ask("ui", 1, today_ns) && ask("ui", 1, today_ns));
    cr_assert(zero(int, unlink(path)));
    cr_assert(zero(int, mkfifo(path, 0600)));
    cr_expect(ask("ui", 1, today_ns) && ask("ui", 1, today_ns));
    cr_assert(zero(int, unlink(path)));
    cr_assert(zero(int, mkdir(path, 0700)));
    cr_expect(ask("ui", 1, today_ns) && ask("ui", 1, today_ns));
    cr_assert(zero(int, rmdir(path)));
    cr_expect(ask("ui", 1, today_ns));
    int fd = open(path, O_RDWR | O_CLOEXEC);
    cr_assert(zero(int, flock(fd, LOCK_EX)));
    cr_expect(ask("ui", 1, today_ns), "another process holds the lock, and does not give it back");
    cr_assert(zero(int, flock(fd, LOCK_UN)));
    cr_expect(not(ask("ui", 1, today_ns)));
    cr_assert(zero(int, ftruncate(fd, 10)));
    cr_expect(ask("ui", 1, today_ns), "it is damaged");
    cr_expect(not(ask("ui", 1, today_ns)));
    memset(path, 'x', sizeof path);
    for (off_t at = 0; at < 12000; at += (off_t)sizeof path) {
        cr_assert(eq(sz, (size_t)pwrite(fd, path, sizeof path, at), sizeof path));
    }
    cr_expect(ask("ui", 1, today_ns));
    cr_expect(not(ask("ui", 1, today_ns)));
    (void)close(fd);
}

/* --- a session ---------------------------------------------------------------------------- */

static bugpack_event failed;

static void on_event(const bugpack_event *event, void *context) {
    if (event->kind == BUGPACK_EVENT_FAILED) {
        failed = *event;
    }
    (void)context;
}

Test(quota, of_a_gap_lasts_longer_than_its_session_and_is_told) {
    options.limits.per_signature = 1;
    options.on_event = on_event;
    open_session();
    bugpack_gap(session, "display:unimpl:7");
    cr_expect(eq(uint, pedantic_settle().written_count, 1));
    cr_expect(says(pedantic_path("unimpl-7", ".zip"), "metadata.json",
                   "\"signature\": \"gap display:unimpl:7\""));
    bugpack_close(session);
    open_session();
    bugpack_gap(session, "display:unimpl:7");
    cr_expect(zero(uint, pedantic_settle().written_count));
    cr_expect(eq(int, failed.error.status, BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, failed.error.message,
                 "limits.per_signature: pedantic \"display:unimpl:7\" has its 1 report of this "
                 "day"));
    bugpack_gap(session, "display:unimpl:7"); /* is counted, and tries no more */
    bugpack_gap(session, "display:unimpl:8");
    cr_expect(eq(uint, pedantic_settle().written_count, 1));
    cr_expect(eq(sz, pedantic_count("unimpl-7", ".zip"), 1));
    cr_expect(says(pedantic_path("unimpl-8", ".zip"), "manifest.json",
                   "\"reason\": \"as many reports of it as limits.per_signature allows were taken "
                   "that day\""));
}

static bugpack_status refuse_once(const bugpack_unpublished *report, void *context,
                                  bugpack_error *error) {
    static int count;
    (void)report;
    (void)context;
    (void)error;
    return count++ == 0 ? BUGPACK_ERR_CANCELLED : BUGPACK_OK;
}

Test(quota, of_a_report_that_is_not_written_is_given_back) {
    options.limits.per_signature = 1;
    options.before_publish = refuse_once;
    open_session();
    bugpack_gap(session, "display:unimpl:7");
    cr_expect(zero(uint, pedantic_settle().written_count));
    bugpack_gap(session, "display:unimpl:7");
    cr_expect(eq(uint, pedantic_settle().written_count, 1));
}

Test(quota, is_off_on_request_and_leaves_nothing) {
    options.limits.per_signature = BUGPACK_OFF;
    for (int i = 0; i < 7; i++) {
        open_session();
        bugpack_gap(session, "display:unimpl:7");
        cr_expect(eq(uint, pedantic_settle().written_count, 1));
        bugpack_close(session);
    }
    session = NULL;
    cr_expect(eq(sz, pedantic_count("unimpl-7", ".zip"), 7));
    cr_expect(zero(sz, pedantic_count(BP_QUOTA_NAME, "s")));
}
