/*
 * A host on a Mac that is none: the darwin sampler, a Mach of our own, and the real path of a
 * report from session to zip. Writes DIR/a.zip and DIR/b.zip half a second apart, and
 * DIR/refused.zip where Mach lists no threads. A session about another process is refused.
 */
#include <bugpack/bugpack.h>

#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "support/check.h"
#include "support/mach/fake_kernel.h"

#include "base/clock.h"

static const char *directory;
static uint64_t last_ns;

/* Time passes on the fake machine as it does on ours, and one thread is busy for a quarter of it.
 */
static void pass_time(const char *call) {
    (void)call;
    uint64_t now_ns = bp_clock_monotonic_ns();
    mach_fake.absolute += (now_ns - last_ns) / 125 * 3;
    mach_fake.threads[2].user_us += (now_ns - last_ns) / 4000;
    last_ns = now_ns;
}

static void make_mac(void) {
    mach_fake_reset();
    while (mach_fake.thread_count < 12) {
        (void)mach_fake_add(2000 + mach_fake.thread_count, "tokio-runtime-worker", 1000, 1000);
    }
    last_ns = bp_clock_monotonic_ns();
    mach_fake.on_call = pass_time;
}

static void write_report(bugpack *session, const char *name) {
    char path[1024];
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    (void)snprintf(path, sizeof path, "%s/%s.zip", directory, name);
    request.output_path = path;
    if (bugpack_report(session, &request, &result) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s: %s\n", name, result.error.message);
        exit(1);
    }
}

static bugpack *open_session(void) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack *session = NULL;
    options.app_name = "viewer";
    options.report_dir = directory;
    options.recorder_in_memory = true;
    options.sample_window_ms = 400;
    options.history_interval_ms = BUGPACK_OFF; /* a window of its own for each report */
    options.target_pid = getppid();
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_ERR_UNSUPPORTED);
    options.target_pid = 0;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    return session;
}

int main(int argc, char **argv) {
    CHECK(argc == 2);
    directory = argv[1];
    make_mac();
    bugpack *session = open_session();
    bugpack_log(session, BUGPACK_LEVEL_WARN, "display", "cache miss");
    write_report(session, "a");
    (void)nanosleep(&(struct timespec){.tv_nsec = 500000000}, NULL);
    write_report(session, "b");
    mach_fake.thread_count = 0;
    mach_fake.on_call = NULL;
    write_report(session, "refused");
    bugpack_close(session);
    mach_fake_account account = mach_fake_outstanding();
    CHECK(account.rights == 0 && account.lists == 0 && account.wrong_releases == 0);
    CHECK(account.rights_given > 0);
    return 0;
}
