/*
 * A crash on an alternate stack of any size, and one amid signals that others send: the process
 * dies of its own signal, at once, and leaves a whole page wherever the kernel could call the
 * handler.
 *
 *     crash_stacks [HOW OFTEN]
 */
#include <bugpack/bugpack.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "platform/crash_page.h"
#include "support/check.h"
#include "support/temp_dir.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51
#endif

/* Far above what a crash takes, also on a busy machine. */
static const uint64_t limit_ns = 60 * BP_NS_PER_SEC;

/* The handler of the first call, and sigaction of glibc. */
enum { own_need_bytes = 1536, largest_bytes = 12288, step_bytes = 64 };

static temp_dir dir;
static char *page_path; /* shared with the host */
static int *volatile nowhere;

static void open_host(void) {
    const struct rlimit no_core = {0, 0};
    char own_dir[300];
    bugpack_session *session = NULL;
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "crashing";
    options.report_dir = dir.path;
    options.recorder.dir = own_dir; /* those before it are not to be recovered */
    options.recorder.traffic_budget_bytes = BUGPACK_OFF;
    options.recorder.log_ring_bytes = 4096;
    (void)snprintf(own_dir, sizeof own_dir, "%s/%ld", dir.path, (long)getpid());
    (void)setrlimit(RLIMIT_CORE, &no_core);
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_recorder_locate(session, &location, NULL) == BUGPACK_OK);
    (void)snprintf(page_path, 512, "%s/%s", location.path, BP_CRASH_PAGE_NAME);
    CHECK(bugpack_crash_handler_install(session, NULL) == BUGPACK_OK);
}

/* Dies of its signal, within the limit. */
static void expect_death(pid_t pid, int number, const char *what) {
    int status;
    uint64_t deadline_ns = bp_clock_monotonic_ns() + limit_ns;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        if (bp_clock_monotonic_ns() > deadline_ns) {
            (void)fprintf(stderr, "%s: it has not died\n", what);
            (void)kill(pid, SIGKILL);
            exit(1);
        }
        bp_clock_sleep_until(bp_clock_monotonic_ns() + BP_NS_PER_MS);
    }
    if (!WIFSIGNALED(status) || WTERMSIG(status) != number) {
        (void)fprintf(stderr, "%s: the wait status is %#x\n", what, status);
        exit(1);
    }
}

/* Whether the page that it left is whole and of this signal. */
static bool has_page(int number) {
    static bp_crash_page page;
    int fd = open(page_path, O_RDONLY | O_CLOEXEC);
    CHECK(fd >= 0);
    CHECK(read(fd, &page, sizeof page) == (ssize_t)sizeof page);
    (void)close(fd);
    return page.check != 0 && page.check == bp_crash_page_check(&page) && page.signal == number;
}

static void expect_page(const char *what) {
    if (!has_page(SIGSEGV)) {
        (void)fprintf(stderr, "%s: there is no page\n", what);
        exit(1);
    }
}

/* Behind a guard, or over memory that may be written. */
static _Noreturn void crash_on(size_t stack_bytes, bool is_guarded) {
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *low = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(low != MAP_FAILED && (!is_guarded || mprotect(low, 4 * page, PROT_NONE) == 0));
    const stack_t stack = {.ss_sp = low + 4 * page, .ss_size = stack_bytes};
    open_host();
    CHECK(sigaltstack(&stack, NULL) == 0);
    *nowhere = 1;
    _exit(4);
}

/* What the kernel accepts. glibc's MINSIGSTKSZ is more. */
static size_t least_bytes(void) {
    static char memory[largest_bytes];
    const stack_t none = {.ss_flags = SS_DISABLE};
    stack_t stack = {.ss_sp = memory, .ss_size = 1024};
    while (sigaltstack(&stack, NULL) != 0) {
        CHECK(errno == ENOMEM && stack.ss_size < largest_bytes);
        stack.ss_size += step_bytes;
    }
    CHECK(sigaltstack(&none, NULL) == 0);
    return stack.ss_size;
}

static void dies_on_every_alternate_stack(void) {
    size_t frame_bytes = getauxval(AT_MINSIGSTKSZ);
    unsigned count = 0;
    for (size_t bytes = least_bytes(); bytes <= largest_bytes; bytes += step_bytes) {
        char what[64];
        (void)snprintf(what, sizeof what, "an alternate stack of %zu bytes", bytes);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            crash_on(bytes, bytes / step_bytes % 2 == 0);
        }
        expect_death(pid, SIGSEGV, what);
        count += has_page(SIGSEGV);
        if (frame_bytes > 0 && bytes >= frame_bytes + own_need_bytes) {
            expect_page(what);
        }
    }
    (void)printf("%u alternate stacks had room for a page\n", count);
}

static void *send_for_ever(void *nothing) {
    while (kill(getpid(), SIGSEGV) == 0) {}
    return nothing;
}

static void *crash(void *nothing) {
    *nowhere = 1;
    return nothing;
}

/* By another process, by another thread, or by another thread beside a fault. */
static _Noreturn void be_shot(unsigned way, int ready_fd) {
    pthread_t sender;
    open_host();
    (void)close(ready_fd);
    CHECK(way == 0 || pthread_create(&sender, NULL, send_for_ever, NULL) == 0);
    CHECK(way != 2 || pthread_create(&sender, NULL, crash, NULL) == 0);
    for (;;) {
        (void)pause();
    }
}

static void dies_amid_signals(unsigned turn) {
    char what[64], byte;
    int ready[2];
    (void)snprintf(what, sizeof what, "signals in a loop, turn %u", turn);
    CHECK(pipe(ready) == 0);
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        (void)close(ready[0]);
        be_shot(turn % 3, ready[1]);
    }
    (void)close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 0);
    (void)close(ready[0]);
    siginfo_t end = {.si_pid = 0};
    while (turn % 3 == 0 && end.si_pid == 0) {
        (void)kill(pid, SIGSEGV);
        CHECK(waitid(P_PID, (id_t)pid, &end, WEXITED | WNOHANG | WNOWAIT) == 0);
    }
    expect_death(pid, SIGSEGV, what);
    expect_page(what);
}

int main(int argument_count, char **arguments) {
    unsigned long turn_count = run_length(argument_count, arguments, 30);
    page_path = mmap(NULL, 512, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(page_path != MAP_FAILED && temp_dir_make(&dir));
    (void)signal(SIGSEGV, SIG_DFL); /* a sanitizer has a handler of its own */
    dies_on_every_alternate_stack();
    for (unsigned turn = 0; turn < turn_count; turn++) {
        dies_amid_signals(turn);
    }
    temp_dir_remove(&dir);
    return 0;
}
