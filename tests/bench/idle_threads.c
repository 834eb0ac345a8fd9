#include "bench/idle_threads.h"

#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

#include "support/check.h"

static pthread_barrier_t all_there;

static void *idle(void *unused) {
    (void)unused;
    (void)pthread_barrier_wait(&all_there);
    for (;;) {
        (void)pause();
    }
    return NULL;
}

void start_idle_threads(unsigned thread_count) {
    pthread_attr_t attributes;
    CHECK(pthread_attr_init(&attributes) == 0);
    CHECK(pthread_attr_setstacksize(&attributes, (size_t)64 * 1024) == 0);
    CHECK(pthread_barrier_init(&all_there, NULL, thread_count) == 0);
    for (unsigned i = 1; i < thread_count; i++) {
        pthread_t thread;
        CHECK(pthread_create(&thread, &attributes, idle, NULL) == 0);
    }
    (void)pthread_barrier_wait(&all_there);
}
