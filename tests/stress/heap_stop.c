/*
 * Stopping a thread for an instant harms nothing: a tracer that is killed at any time leaves its
 * target running, and every signal that the target was sent arrives.
 *
 *   stress_heap_stop [KILLS]    how many tracers are killed (default 100)
 */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "stacks/thread_stop.h"
#include "support/check.h"

enum { signal_count = 300 };

/* What has not come after so many (10 s at the least) never will. */
static const unsigned hopeless_naps = 500000;

static const uint32_t stop_timeout_ms = 5000;

/* What the target does, where the test sees it. */
struct progress {
    atomic_uint turns;
    atomic_uint signals;
    atomic_bool is_ready;
};
static struct progress *progress;

static void nap_us(long us) {
    const struct timespec wait = {.tv_nsec = us * 1000};
    (void)nanosleep(&wait, NULL);
}

static void count_signal(int signal_number) {
    (void)signal_number;
    atomic_fetch_add(&progress->signals, 1);
}

/*
 * Each signal comes within ppoll(), one at a time: the thread sanitizer keeps back what comes
 * elsewhere, and of several signals of a number only one.
 */
static pid_t start_target(void) {
    *progress = (struct progress){0};
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct sigaction action = {.sa_handler = count_signal};
        const struct timespec pause = {.tv_nsec = 50000};
        sigset_t counted, before;
        (void)sigemptyset(&counted);
        (void)sigaddset(&counted, SIGRTMIN);
        (void)sigprocmask(SIG_BLOCK, &counted, &before);
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
        (void)sigaction(SIGRTMIN, &action, NULL);
        atomic_store(&progress->is_ready, true);
        for (;;) {
            atomic_fetch_add(&progress->turns, 1);
            (void)ppoll(NULL, 0, &pause, &before);
        }
    }
    while (!atomic_load(&progress->is_ready)) {
        nap_us(100);
    }
    return pid;
}

/* The letter of its state, from /proc. */
static char state_of(pid_t pid) {
    char path[64];
    char text[256] = "";
    (void)snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    CHECK(file != NULL);
    CHECK(fread(text, 1, sizeof text - 1, file) > 0);
    (void)fclose(file);
    const char *end = strrchr(text, ')');
    CHECK(end != NULL && end[1] == ' ');
    return end[2];
}

static void wait_for_turns(pid_t pid) {
    unsigned before = atomic_load(&progress->turns);
    for (unsigned naps = 0; atomic_load(&progress->turns) < before + 3; naps++) {
        CHECK(naps < hopeless_naps);
        char state = state_of(pid);
        CHECK(state == 'R' || state == 'S' || state == 't' || state == 'D');
        nap_us(200);
    }
}

static unsigned char stack[BP_STACK_COPY_BYTES];

/* Every second one copies the stack. */
static void a_killed_tracer_leaves_its_target_running(long kill_count) {
    pid_t target = start_target();
    for (long i = 0; i < kill_count; i++) {
        pid_t tracer = fork();
        CHECK(tracer >= 0);
        if (tracer == 0) {
            for (;;) {
                bp_thread_copy copy = {.stack = stack};
                uint64_t value;
                int failure_errno;
                if (i % 2 == 0) {
                    (void)bp_thread_stop_copy(target, target, stop_timeout_ms, &copy, &value);
                } else {
                    (void)bp_thread_stop_read_pointer(target, stop_timeout_ms, &value,
                                                      &failure_errno);
                }
            }
        }
        nap_us(500 + 37 * (i % 100));
        CHECK(kill(tracer, SIGKILL) == 0);
        CHECK(waitpid(tracer, NULL, 0) == tracer);
        wait_for_turns(target);
        CHECK(waitpid(target, NULL, WNOHANG) == 0);
    }
    CHECK(kill(target, SIGKILL) == 0);
    CHECK(waitpid(target, NULL, 0) == target);
    (void)printf("%ld tracers killed, no target left stopped\n", kill_count);
}

/* A queued signal is neither lost nor doubled by a stop that meets it. */
static void every_signal_is_delivered_once(void) {
    pid_t target = start_target();
    unsigned read_count = 0;
    for (int i = 0; i < signal_count; i++) {
        uint64_t pointer = 0;
        int failure_errno = 0;
        CHECK(sigqueue(target, SIGRTMIN, (union sigval){.sival_int = i}) == 0);
        bp_heap_failure failure =
            bp_thread_stop_read_pointer(target, stop_timeout_ms, &pointer, &failure_errno);
        if (failure != BP_HEAP_FAILURE_NONE && i == 0) {
            SKIP("ptrace is forbidden here");
        }
        CHECK(failure == BP_HEAP_FAILURE_NONE && pointer != 0);
        read_count++;
    }
    CHECK(read_count == signal_count);
    for (unsigned naps = 0; atomic_load(&progress->signals) < signal_count; naps++) {
        CHECK(naps < hopeless_naps);
        nap_us(200);
    }
    wait_for_turns(target);
    CHECK(atomic_load(&progress->signals) == signal_count);
    CHECK(kill(target, SIGKILL) == 0);
    CHECK(waitpid(target, NULL, 0) == target);
}

static void a_thread_that_is_gone_is_a_failure_of_its_own(void) {
    pid_t target = start_target();
    uint64_t pointer = 4711;
    int failure_errno = 0;
    CHECK(kill(target, SIGKILL) == 0);
    CHECK(waitpid(target, NULL, 0) == target);
    CHECK(bp_thread_stop_read_pointer(target, stop_timeout_ms, &pointer, &failure_errno) ==
          BP_HEAP_FAILURE_PTRACE_SEIZE);
    CHECK(failure_errno != 0 && pointer == 4711);
    bp_thread_copy copy = {.stack = stack};
    CHECK(bp_thread_stop_copy(target, target, stop_timeout_ms, &copy, &pointer) != 0);
}

static void a_copy_has_registers_and_stack(void) {
    pid_t target = start_target();
    bp_thread_copy copy = {.stack = stack};
    uint64_t pause_ns = 0;
    CHECK(bp_thread_stop_copy(target, target, stop_timeout_ms, &copy, &pause_ns) == 0);
    CHECK(copy.register_count > 2 && copy.program_counter != 0 && copy.stack_bytes > 0);
    CHECK(copy.pid == 0 && pause_ns > 0);
    wait_for_turns(target);
    CHECK(kill(target, SIGKILL) == 0);
    CHECK(waitpid(target, NULL, 0) == target);
}

int main(int argument_count, char **arguments) {
    progress =
        mmap(NULL, sizeof *progress, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    CHECK(progress != MAP_FAILED);
    every_signal_is_delivered_once();
    a_copy_has_registers_and_stack();
    a_killed_tracer_leaves_its_target_running(argument_count > 1 ? strtol(arguments[1], NULL, 10)
                                                                 : 100);
    a_thread_that_is_gone_is_a_failure_of_its_own();
    return 0;
}
