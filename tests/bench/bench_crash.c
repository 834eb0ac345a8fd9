/*
 * What the crash handler costs: bench_crash DIRECTORY [MAPPINGS]. docs/BENCHMARKS.md has the table.
 */
#include <bugpack/bugpack.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/check.h"

enum { round_count = 40, resumed_count = 20 };

/* What a host measured before its end, in nanoseconds; shared with its parent. */
typedef struct measures {
    uint64_t crashed_at, install, resumed;
} measures;

static char *page;

static void repair(int number) {
    (void)number;
    (void)mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void handle_faults(void (*handler)(int)) {
    struct sigaction action = {.sa_handler = handler};
    CHECK(sigaction(SIGSEGV, &action, NULL) == 0);
}

static bugpack *open_session(const char *directory, bool has_handler) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack *session = NULL;
    options.app_name = "bench";
    options.report_dir = options.recorder_dir = directory;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(!has_handler || bugpack_crash_handler_install(session) == BUGPACK_OK);
    return session;
}

static void crash(const char *directory, int mapping_count, bool has_handler, measures *out) {
    static int *volatile nowhere;
    for (int i = 0; i < mapping_count / 2; i++) {
        char *two = mmap(NULL, 8192, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        (void)mprotect(two, 4096, PROT_NONE);
    }
    page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    handle_faults(repair);
    bugpack *session = open_session(directory, false);
    uint64_t began_ns = bp_clock_monotonic_ns();
    CHECK(!has_handler || bugpack_crash_handler_install(session) == BUGPACK_OK);
    out->install = bp_clock_monotonic_ns() - began_ns;
    began_ns = bp_clock_monotonic_ns();
    for (int i = 0; i < resumed_count; i++) {
        *(volatile char *)page = 1;
        (void)mprotect(page, 4096, PROT_NONE);
    }
    out->resumed = (bp_clock_monotonic_ns() - began_ns) / resumed_count;
    bugpack_close(session);
    handle_faults(SIG_DFL);
    (void)open_session(directory, has_handler);
    out->crashed_at = bp_clock_monotonic_ns();
    *nowhere = 1;
}

static int compare(const void *one, const void *other) {
    uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static double median_ms(uint64_t *values) {
    qsort(values, round_count, sizeof values[0], compare);
    return (double)values[round_count / 2] / 1e6;
}

int main(int argument_count, char **arguments) {
    static uint64_t death[2][round_count], resumed[2][round_count], install[2][round_count];
    const struct rlimit no_core = {0, 0};
    measures *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(argument_count > 1 && shared != MAP_FAILED && setrlimit(RLIMIT_CORE, &no_core) == 0);
    int mapping_count = argument_count > 2 ? (int)strtol(arguments[2], NULL, 10) : 0;
    for (int i = 0; i < 2 * round_count; i++) {
        int status;
        pid_t host = fork();
        if (host == 0) {
            crash(arguments[1], mapping_count, i % 2 == 1, shared);
        }
        CHECK(waitpid(host, &status, 0) == host);
        death[i % 2][i / 2] = bp_clock_monotonic_ns() - shared->crashed_at;
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
        resumed[i % 2][i / 2] = shared->resumed;
        install[i % 2][i / 2] = shared->install;
    }
    (void)printf("| ms, %d more mappings | without | with |\n| --- | ---: | ---: |\n",
                 mapping_count);
    (void)printf("| installation | | %.2f |\n", median_ms(install[1]));
    (void)printf("| from signal to end | %.1f | %.1f |\n", median_ms(death[0]),
                 median_ms(death[1]));
    (void)printf("| signal that is resumed | %.3f | %.3f |\n", median_ms(resumed[0]),
                 median_ms(resumed[1]));
    return 0;
}
