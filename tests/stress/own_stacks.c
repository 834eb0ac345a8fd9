/*
 * The stacks of threads of the process itself that run: a helper stops them, and the host sees
 * nothing of it.
 *
 *   stress_own_stacks BUGPACK
 */
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>

#include <bugpack/bugpack.h>

#include "base/sanitizer.h"
#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static atomic_uint signal_count, child_count;
static atomic_bool is_over;
static atomic_ulong turns;

static void count_signal(int number) {
    (void)number;
    atomic_fetch_add(&signal_count, 1);
}

__attribute__((noinline)) static void turn(void) {
    while (!atomic_load(&is_over)) {
        atomic_fetch_add(&turns, 1);
    }
}

static void *spin(void *unused) {
    turn();
    return unused;
}

/* As a host that reaps whatever there is. */
static void *reap(void *unused) {
    while (!atomic_load(&is_over)) {
        if (waitpid(-1, NULL, WNOHANG) >= 0 || errno != ECHILD) {
            atomic_fetch_add(&child_count, 1);
        }
    }
    return unused;
}

/* Whether a stack of a thread that was stopped is in a report of this choice. */
static bool has_stopped(const temp_dir *dir, const char *command, bugpack_stacks choice) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_session *session = NULL;
    options.app_name = "host";
    options.report_dir = dir->path;
    options.sample_window_ms = 20;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.limits.provider_timeout_ms = 60000;
    options.calibrator_path = command;
    options.stacks = choice;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
    bugpack_close(session);
    bool is_stopped = report_entry_contains(result.path, "stacks.json", "\"stopped_us\"");
    if (is_stopped) {
        CHECK(report_entry_contains(result.path, "stacks.txt", " in turn ()"));
    }
    return is_stopped;
}

/* Asked of the system: bugpack does not decide whether this is tested. */
static bool is_tracing_allowed(void) {
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    bool is_allowed = ptrace(PTRACE_SEIZE, child, NULL, NULL) == 0;
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    return is_allowed;
}

int main(int argument_count, char **arguments) {
    temp_dir dir;
    pthread_t threads[2];
    struct sigaction action = {.sa_handler = count_signal};
    if (BP_THREAD_SANITIZER) {
        SKIP("the thread sanitizer knows no process that shares our memory");
    }
    if (dlopen("libdw.so.1", RTLD_NOW) == NULL) {
        SKIP("there is no libdw");
    }
    if (!is_tracing_allowed()) {
        SKIP("ptrace is forbidden here");
    }
    CHECK(argument_count == 2 && temp_dir_make(&dir));
    CHECK(sigaction(SIGCHLD, &action, NULL) == 0);
    CHECK(pthread_create(&threads[0], NULL, spin, NULL) == 0);
    CHECK(pthread_create(&threads[1], NULL, reap, NULL) == 0);
    CHECK(!has_stopped(&dir, arguments[1], BUGPACK_STACKS_BLOCKED));
    /* The helper has a second to answer, which a busy machine may not give it. */
    bool is_stopped = false;
    for (unsigned i = 0; i < 5 && !is_stopped; i++) {
        is_stopped = has_stopped(&dir, arguments[1], BUGPACK_STACKS_ALL_PTRACER);
    }
    CHECK(is_stopped);
    unsigned long before = atomic_load(&turns);
    while (atomic_load(&turns) < before + 1000) {}
    CHECK(!has_stopped(&dir, "/nonexistent", BUGPACK_STACKS_ALL));
    /* A process that gets the children of its children would get the helper. */
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0);
    CHECK(!has_stopped(&dir, arguments[1], BUGPACK_STACKS_ALL));
    atomic_store(&is_over, true);
    CHECK(pthread_join(threads[0], NULL) == 0 && pthread_join(threads[1], NULL) == 0);
    CHECK(atomic_load(&signal_count) == 0 && atomic_load(&child_count) == 0);
    temp_dir_remove(&dir);
    return 0;
}
