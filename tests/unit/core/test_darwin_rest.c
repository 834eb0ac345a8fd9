/*
 * What macOS has beside the sampler, on Linux, with Apple's calls played to it.
 */
#include <pthread.h>

#define DARWIN_CALLS_THEMSELVES
#include "base/clock.h"
#include "platform/machine.h"
#include "platform/staged_file.h"
#include "platform/stream.h"
#include "platform/thread.h"
#include "support/darwin/darwin_calls.h"
#include "unit/dir.h"

DIR_SUITE(darwin_rest);

Test(darwin_rest, a_full_sync_needs_no_other) {
    cr_expect(eq(int, bp_staged_sync(-1), 0));
    cr_expect(eq(uint, darwin.full_sync_count, 1));
    cr_expect(eq(uint, darwin.sync_count, 0));
}

Test(darwin_rest, a_full_sync_that_was_interrupted_is_repeated) {
    darwin.full_sync_errors[0] = darwin.full_sync_errors[1] = EINTR;
    cr_expect(eq(int, bp_staged_sync(-1), 0));
    cr_expect(eq(uint, darwin.full_sync_count, 3));
    cr_expect(eq(uint, darwin.sync_count, 0));
}

Test(darwin_rest, a_file_system_without_full_sync_gets_the_plain_one) {
    static const int refusals[] = {ENOTSUP, EINVAL, ENOTTY, ENOSYS, ENODEV};
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        darwin = (darwin_calls){.full_sync_errors = {refusals[i]}};
        cr_expect(eq(int, bp_staged_sync(dir.fd), 0));
        cr_expect(eq(uint, darwin.sync_count, 1));
    }
}

Test(darwin_rest, what_the_disk_reports_is_not_asked_away) {
    static const int reports[] = {EIO, ENOSPC, EDQUOT};
    for (size_t i = 0; i < sizeof reports / sizeof reports[0]; i++) {
        darwin = (darwin_calls){.full_sync_errors = {reports[i]}};
        cr_expect(eq(int, bp_staged_sync(-1), -1));
        cr_expect(eq(int, errno, reports[i]));
        cr_expect(eq(uint, darwin.sync_count, 0));
    }
    darwin = (darwin_calls){.full_sync_errors = {ENOTSUP}, .sync_error = EIO};
    cr_expect(eq(int, bp_staged_sync(-1), -1), "the plain one's report counts too");
}

Test(darwin_rest, a_rename_replaces_nothing) {
    cr_assert(temp_dir_write(&dir, "new", "new", 3));
    cr_assert(temp_dir_write(&dir, "old", "old", 3));
    cr_expect(eq(int, bp_staged_rename_new(dir.fd, "new", "old"), -1));
    cr_expect(eq(int, errno, EEXIST));
    cr_expect(eq(int, bp_staged_rename_new(dir.fd, "new", "free"), 0));
    cr_expect(eq(int, faccessat(dir.fd, "new", F_OK, 0), -1));
}

Test(darwin_rest, reports_go_to_application_support) {
    char path[64] = "";
    cr_assert(eq(int, setenv("HOME", "/Users/someone", 1), 0));
    cr_assert(eq(int, setenv("XDG_STATE_HOME", "/elsewhere", 1), 0));
    cr_assert(eq(int, bp_machine_report_directory(path, sizeof path, NULL), BUGPACK_OK));
    cr_expect(eq(str, path, "/Users/someone/Library/Application Support/bugpack"));
}

Test(darwin_rest, a_home_that_is_missing_relative_or_too_long_names_no_report_directory) {
    char path[64] = "as it was";
    cr_assert(eq(int, setenv("HOME", "relative", 1), 0));
    cr_expect(eq(int, bp_machine_report_directory(path, sizeof path, NULL), BUGPACK_ERR_INVALID));
    cr_assert(eq(int, unsetenv("HOME"), 0));
    cr_expect(eq(int, bp_machine_report_directory(path, sizeof path, NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, path, "as it was"));
    cr_assert(eq(int, setenv("HOME", "/Users/someone-with-a-name-that-goes-on", 1), 0));
    cr_expect(eq(int, bp_machine_report_directory(path, sizeof path, NULL), BUGPACK_ERR_INVALID));
}

Test(darwin_rest, sessions_live_in_the_users_own_temporary_directory) {
    bp_ring_dir place;
    unsigned cursor = 0;
    cr_assert(eq(int, setenv("TMPDIR", "/var/folders/zz/T//", 1), 0));
    cr_assert(bp_ring_dirs_next(&cursor, &place));
    cr_expect(eq(str, place.path, "/var/folders/zz/T/bugpack"));
    cr_expect(not(bp_ring_dirs_next(&cursor, &place)));
}

Test(darwin_rest, a_daemon_without_tmpdir_asks_the_system) {
    bp_ring_dir place;
    unsigned cursor = 0;
    cr_assert(eq(int, setenv("TMPDIR", "relative", 1), 0));
    cr_expect(not(bp_ring_dirs_next(&cursor, &place)));
    darwin.user_temp_dir = "/var/folders/yy/T/";
    cursor = 0;
    cr_assert(bp_ring_dirs_next(&cursor, &place));
    cr_expect(eq(str, place.path, "/var/folders/yy/T/bugpack"));
}

Test(darwin_rest, a_wait_is_as_long_as_what_is_left) {
    pthread_cond_t condition;
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    bp_condition_init(&condition);
    uint64_t now_ns = bp_clock_monotonic_ns();
    darwin.skips_waits = true;
    cr_expect(not(bp_condition_wait_until(&condition, &mutex, now_ns)));
    cr_expect(eq(u64, darwin.waited_ns, 0), "a deadline that has passed is not waited for");
    uint64_t hour_ns = 3600 * BP_NS_PER_SEC;
    cr_expect(not(bp_condition_wait_until(&condition, &mutex, now_ns + hour_ns)));
    cr_expect(gt(u64, darwin.waited_ns, 0));
    cr_expect(le(u64, darwin.waited_ns, hour_ns));
    cr_expect(bp_condition_wait_until(&condition, &mutex, UINT64_MAX), "never comes");
    (void)pthread_cond_destroy(&condition);
}

Test(darwin_rest, a_thread_has_the_id_that_the_sampler_reports) {
    cr_expect(eq(u64, bp_thread_id(), (uint64_t)gettid()));
    bp_thread_set_name("bugpack-test");
    cr_expect(eq(str, darwin.thread_name, "bugpack-test"));
}

typedef struct collected {
    char text[32];
    size_t bytes;
    unsigned closed_count;
} collected;

static void collect(void *context, const char *bytes, size_t byte_count) {
    collected *all = context;
    for (size_t i = 0; i < byte_count && all->bytes < sizeof all->text - 1; i++) {
        all->text[all->bytes++] = bytes[i];
    }
    errno = EPIPE; /* which the writer must not see */
}

static void count_close(void *context) {
    collected *all = context;
    all->closed_count++;
}

Test(darwin_rest, a_stream_gives_its_output_to_a_function) {
    collected all = {0};
    FILE *stream = NULL;
    bp_stream_calls calls = {.write = collect, .close = count_close};
    cr_assert(eq(int, bp_stream_open(&calls, &all, &stream, NULL), BUGPACK_OK));
    cr_expect(eq(int, fileno(stream), -1));
    errno = 0;
    cr_expect(gt(int, fprintf(stream, "frame %d lost", 7), 0));
    cr_expect(eq(int, fflush(stream), 0));
    cr_expect(eq(int, errno, 0));
    cr_expect(eq(str, all.text, "frame 7 lost"));
    cr_expect(eq(uint, all.closed_count, 0));
    cr_expect(eq(int, fclose(stream), 0));
    cr_expect(eq(uint, all.closed_count, 1));
}
