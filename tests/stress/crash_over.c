/*
 * A host's crash reporter that is put over the crash handler and passes its signal on, while
 * sessions are closed and opened below it: it is called once, and the process dies of the signal.
 */
#include <bugpack/bugpack.h>

#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { reporter_count = 2, limit_secs = 60 };

typedef void reporter(int number, siginfo_t *info, void *context);

static volatile int *call_counts; /* shared with the child */
static struct sigaction below[reporter_count];

static void pass_on(int which, int number, siginfo_t *info, void *context) {
    if (++call_counts[which] > 1) {
        _exit(3);
    }
    below[which].sa_sigaction(number, info, context);
}

static void report_first(int number, siginfo_t *info, void *context) {
    pass_on(0, number, info, context);
}

static void report_second(int number, siginfo_t *info, void *context) {
    pass_on(1, number, info, context);
}

static bugpack_session *open_session(const temp_dir *dir) {
    bugpack_session *session = NULL;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "over";
    options.report_dir = options.recorder.dir = dir->path;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    return session;
}

/* 'i': install; 'c': close, and open the next session; '1' and '2': put a reporter over it. */
static _Noreturn void crash(const temp_dir *dir, const char *steps) {
    static reporter *const reporters[reporter_count] = {report_first, report_second};
    const struct rlimit no_core = {0, 0};
    (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
    bugpack_session *session = open_session(dir);
    (void)setrlimit(RLIMIT_CORE, &no_core);
    (void)alarm(limit_secs);
    for (; *steps != '\0'; steps++) {
        if (*steps == 'i') {
            CHECK(bugpack_crash_handler_install(session, NULL) == BUGPACK_OK);
        } else if (*steps == 'c') {
            bugpack_close(session);
            session = open_session(dir);
        } else {
            int which = *steps - '1';
            struct sigaction action = {.sa_sigaction = reporters[which],
                                       .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER};
            CHECK(sigaction(SIGSEGV, &action, &below[which]) == 0);
            CHECK((below[which].sa_flags & SA_SIGINFO) != 0);
        }
    }
    (void)raise(SIGSEGV);
    _exit(4);
}

int main(void) {
    /* Where both are between handlers of ours, the first may be passed over. */
    static const struct {
        const char *steps;
        int first_min, second;
    } rows[] = {{"i1", 1, 0},      {"i1c", 1, 0},    {"i1ci", 1, 0},     {"i1cic", 1, 0},
                {"i1cici", 1, 0},  {"i1ci2c", 1, 1}, {"i1ci2cic", 0, 1}, {"i12ci", 1, 1},
                {"i12cici", 1, 1}, {"i1ci2ci", 0, 1}};
    call_counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(call_counts != MAP_FAILED);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        temp_dir dir;
        int status = 0;
        CHECK(temp_dir_make(&dir));
        call_counts[0] = call_counts[1] = 0;
        pid_t child = fork();
        if (child == 0) {
            crash(&dir, rows[i].steps);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGSEGV ||
            call_counts[0] < rows[i].first_min || call_counts[1] != rows[i].second) {
            (void)fprintf(stderr, "%s: status %#x, calls %d and %d\n", rows[i].steps,
                          (unsigned)status, call_counts[0], call_counts[1]);
            return 1;
        }
        temp_dir_remove(&dir);
    }
    return 0;
}
