/*
 * What a program with a jemalloc inside looks like from outside, without one: the thread-local
 * block, under the names that jemalloc 5 has for it, with counters that are known. It stands in
 * where a real static jemalloc with debug data cannot be had, and wherever exact values are wanted.
 *
 *   tsd_stand_in READY-FILE [THREADS]
 *
 * It goes on as another program (sleep) after SIGUSR1. Thread number n (the first is 0) has
 * allocated 1000 + n bytes and freed 500 + n.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MANGLED(name) cant_access_tsd_items_directly_use_a_getter_or_setter_##name

typedef struct tsd_s {
    char MANGLED(tcache_enabled);
    uint64_t MANGLED(thread_allocated_last_event);
    int MANGLED(state);
    uint64_t MANGLED(thread_allocated_next_event_fast);
    uint64_t MANGLED(thread_allocated);
    uint64_t MANGLED(thread_deallocated_next_event_fast);
    uint64_t MANGLED(thread_deallocated);
    char MANGLED(tcache)[2000];
} tsd_t;

/* An alignment over that of the block, and neighbours, move it away from the segment's ends. */
__thread char before_block[7] __attribute__((aligned(64))) = {1};
__thread tsd_t je_tsd_tls = {.MANGLED(state) = 2};
__thread char behind_block[100];

static pthread_barrier_t all_set;

static void set_counters(uint64_t number) {
    before_block[1] = behind_block[1] = 1;
    je_tsd_tls.MANGLED(thread_allocated) = 1000 + number;
    je_tsd_tls.MANGLED(thread_deallocated) = 500 + number;
}

static void *run(void *number) {
    set_counters((uint64_t)(uintptr_t)number);
    (void)pthread_barrier_wait(&all_set);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

static void go_on_as_another(int signal_number) {
    (void)signal_number;
    (void)execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    _exit(1);
}

int main(int argument_count, char **arguments) {
    unsigned long thread_count = argument_count > 2 ? strtoul(arguments[2], NULL, 10) : 0;
    if (argument_count < 2 || thread_count > 10000 ||
        pthread_barrier_init(&all_set, NULL, (unsigned)thread_count + 1) != 0) {
        return 2;
    }
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    (void)signal(SIGUSR1, go_on_as_another);
    set_counters(0);
    for (unsigned long i = 1; i <= thread_count; i++) {
        pthread_t thread;
        pthread_attr_t attributes;
        (void)pthread_attr_init(&attributes);
        (void)pthread_attr_setstacksize(&attributes, 65536);
        if (pthread_create(&thread, &attributes, run, (void *)(uintptr_t)i) != 0) {
            return 1;
        }
        (void)pthread_attr_destroy(&attributes);
    }
    (void)pthread_barrier_wait(&all_set);
    int fd = open(arguments[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, "ready\n", 6) != 6 || close(fd) != 0) {
        return 1;
    }
    for (;;) {
        (void)pause();
    }
}
