/*
 * What a host may have done to itself before bugpack starts a thread in it: the thread is named
 * without a descriptor, is scheduled like any other, and runs the host's handlers for its own
 * faults only.
 */
#include "support/check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "platform/thread.h"

static void run_on_own_thread(void *(*run)(void *)) {
    pthread_t thread;
    CHECK(bp_thread_start(run, NULL, &thread, NULL) == BUGPACK_OK);
    CHECK(pthread_join(thread, NULL) == 0);
}

/* More than a small stack has. volatile: else the compiler leaves it out. */
static _Thread_local volatile char own_variables[240 * 1024];

static void *use_stack(void *unused) {
    (void)unused;
    volatile char room[192 * 1024];
    for (size_t i = 0; i < sizeof room; i += 1024) {
        room[i] = own_variables[i];
    }
    return NULL;
}

static void has_room_besides_the_thread_local_variables_of_the_host(void) {
    run_on_own_thread(use_stack);
}

static void *expect_name(void *unused) {
    (void)unused;
    char name[BP_THREAD_NAME_BYTES];
    bp_thread_set_name("bugpack-test");
    bp_thread_name(name);
    CHECK(strcmp(name, "bugpack-test") == 0);
    return NULL;
}

/* A host that has used up its descriptors, which is what its report is going to be about. */
static void gets_its_name_without_a_descriptor(void) {
    struct rlimit before;
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    run_on_own_thread(expect_name);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
}

static char *page;
static size_t page_bytes;

static void open_page(int signal_number) {
    (void)signal_number;
    (void)mprotect(page, page_bytes, PROT_READ | PROT_WRITE);
}

static void *write_to_page(void *unused) {
    (void)unused;
    page[0] = 'x';
    return NULL;
}

static void *expect_blocked(void *unused) {
    (void)unused;
    static const int of_the_host[] = {SIGTERM, SIGINT,  SIGCHLD, SIGPIPE, SIGXFSZ,
                                      SIGUSR1, SIGALRM, SIGPROF, SIGHUP};
    sigset_t mask;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &mask) == 0);
    for (size_t i = 0; i < sizeof of_the_host / sizeof of_the_host[0]; i++) {
        CHECK(sigismember(&mask, of_the_host[i]) == 1);
    }
    return NULL;
}

/* Garbage collectors and sandboxes live on this: blocked, the kernel ends the host at once. */
static void lets_the_host_handle_a_fault_of_its_provider(void) {
    page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    page = mmap(NULL, page_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED);
    struct sigaction handle = {.sa_handler = open_page}, before;
    CHECK(sigaction(SIGSEGV, &handle, &before) == 0);
    run_on_own_thread(write_to_page);
    CHECK(page[0] == 'x');
    CHECK(sigaction(SIGSEGV, &before, NULL) == 0);
    CHECK(munmap(page, page_bytes) == 0);
}

static void leaves_the_mask_of_the_thread_that_starts_it(void) {
    sigset_t set, before, after;
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGUSR1);
    (void)sigaddset(&set, SIGSYS);
    CHECK(pthread_sigmask(SIG_SETMASK, &set, &before) == 0);
    run_on_own_thread(expect_blocked);
    CHECK(pthread_sigmask(SIG_SETMASK, &before, &after) == 0);
    CHECK(sigismember(&after, SIGUSR1) == 1 && sigismember(&after, SIGSYS) == 1);
    CHECK(sigismember(&after, SIGTERM) == 0 && sigismember(&after, SIGSEGV) == 0);
}

static void *read_policy(void *unused) {
    (void)unused;
    struct sched_param parameters;
    int policy = -1;
    CHECK(pthread_getschedparam(pthread_self(), &policy, &parameters) == 0);
    CHECK(policy == SCHED_OTHER && parameters.sched_priority == 0);
    return NULL;
}

/* On a thread of its own, since a policy cannot always be given back. */
static void *start_from_batch_thread(void *unused) {
    (void)unused;
    const struct sched_param no_priority = {.sched_priority = 0};
    CHECK(pthread_setschedparam(pthread_self(), SCHED_BATCH, &no_priority) == 0);
    run_on_own_thread(read_policy);
    return NULL;
}

static void is_an_ordinary_thread_whoever_starts_it(void) {
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, start_from_batch_thread, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
}

int main(void) {
    has_room_besides_the_thread_local_variables_of_the_host();
    is_an_ordinary_thread_whoever_starts_it();
    gets_its_name_without_a_descriptor();
    lets_the_host_handle_a_fault_of_its_provider();
    leaves_the_mask_of_the_thread_that_starts_it();
    return 0;
}
