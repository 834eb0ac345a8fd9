#include "base/lock.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "platform/thread.h"
#include "unit/unit.h"

static bp_lock outer = BP_LOCK_INIT(BP_LOCK_JOBS);
static bp_lock inner = BP_LOCK_INIT(BP_LOCK_PROVIDER);

#ifdef BUGPACK_LOCK_CHECKS

/* Runs a child that must be ended by an assertion, and checks what it said. */
static void expect_death(void (*run)(void), const char *sentence) {
    char said[256] = "";
    int ends[2];
    cr_assert(zero(int, pipe(ends)));
    pid_t child = fork();
    if (child == 0) {
        const struct rlimit no_core = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)signal(SIGABRT, SIG_DFL);
        (void)dup2(ends[1], STDERR_FILENO);
        run();
        _exit(0);
    }
    cr_assert(gt(int, child, 0));
    (void)close(ends[1]);
    ssize_t count = read(ends[0], said, sizeof said - 1);
    (void)close(ends[0]);
    int status = 0;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    cr_assert(eq(int, signal_number, SIGABRT), "%s", sentence);
    cr_assert(ge(int, count, 0));
    said[strnlen(sentence, sizeof said - 1)] = '\0'; /* QEMU adds a line of its own */
    cr_assert(eq(str, said, sentence));
}

static void take_against_the_order(void) {
    bp_lock_acquire(&inner);
    bp_lock_acquire(&outer);
}

static void take_two_of_a_rank(void) {
    bp_lock second;
    bp_lock_init(&second, BP_LOCK_JOBS);
    bp_lock_acquire(&outer);
    bp_lock_acquire(&second);
}

static void take_under_a_tried_one(void) {
    (void)bp_lock_try_acquire(&inner);
    bp_lock_acquire(&outer);
}

static void release_what_is_free(void) {
    bp_lock_release(&outer);
}

static void wait_under_another(void) {
    pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    bp_lock_acquire(&outer);
    bp_lock_acquire(&inner);
    bp_lock_wait(&inner, &condition);
}

static void call_the_host(void) {
    bp_lock_acquire(&outer);
    bp_lock_check_none_held();
}

static void take_too_many(void) {
    bp_lock locks[9];
    for (int i = 0; i < 9; i++) {
        bp_lock_init_named(&locks[i], (bp_lock_rank)(i + 1), "of many");
        bp_lock_acquire(&locks[i]);
    }
}

Test(lock, ends_the_process_where_it_is_used_wrongly) {
    static const struct {
        void (*run)(void);
        const char *sentence;
    } rows[] = {
        {take_against_the_order, "lock BP_LOCK_JOBS is taken under BP_LOCK_PROVIDER\n"},
        {take_two_of_a_rank, "lock BP_LOCK_JOBS is taken under BP_LOCK_JOBS\n"},
        {take_under_a_tried_one, "lock BP_LOCK_JOBS is taken under BP_LOCK_PROVIDER\n"},
        {release_what_is_free, "lock BP_LOCK_JOBS is released by a thread that does not hold it\n"},
        {wait_under_another, "lock BP_LOCK_PROVIDER is waited on under BP_LOCK_JOBS\n"},
        {call_the_host, "lock BP_LOCK_JOBS is held while the host's code is called\n"},
        {take_too_many, "lock of many is one lock too many at once\n"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        expect_death(rows[i].run, rows[i].sentence);
    }
}

#endif

Test(lock, may_be_released_in_any_order) {
    for (int i = 0; i < 3; i++) {
        bp_lock_acquire(&outer);
        bp_lock_acquire(&inner);
        bp_lock_release(&outer);
        bp_lock_release(&inner);
    }
    bp_lock_check_none_held();
}

static void *try_it(void *lock) {
    return bp_lock_try_acquire(lock) ? lock : NULL;
}

Test(lock, is_refused_to_who_tries_while_another_thread_holds_it) {
    pthread_t thread;
    void *taken = &thread;
    bp_lock_acquire(&outer);
    cr_assert(zero(int, pthread_create(&thread, NULL, try_it, &outer)));
    cr_assert(zero(int, pthread_join(thread, &taken)));
    cr_assert(zero(ptr, taken));
    bp_lock_release(&outer);
}

struct meeting {
    bp_lock lock;
    pthread_cond_t changed;
    bool is_there;
};

static void *arrive(void *argument) {
    struct meeting *meeting = argument;
    bp_lock_acquire(&meeting->lock);
    meeting->is_there = true;
    (void)pthread_cond_signal(&meeting->changed);
    bp_lock_release(&meeting->lock);
    return NULL;
}

Test(lock, is_free_for_others_during_a_wait) {
    struct meeting meeting = {.is_there = false};
    pthread_t thread;
    bp_lock_init(&meeting.lock, BP_LOCK_JOBS);
    bp_condition_init(&meeting.changed);
    bp_lock_acquire(&meeting.lock);
    cr_assert(zero(int, pthread_create(&thread, NULL, arrive, &meeting)));
    while (!meeting.is_there) {
        bp_lock_wait(&meeting.lock, &meeting.changed);
    }
    cr_assert(not(bp_lock_wait_until(&meeting.lock, &meeting.changed, bp_clock_monotonic_ns())));
    bp_lock_release(&meeting.lock);
    cr_assert(zero(int, pthread_join(thread, NULL)));
    (void)pthread_cond_destroy(&meeting.changed);
    bp_lock_destroy(&meeting.lock);
}
