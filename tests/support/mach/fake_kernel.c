#include "support/mach/fake_kernel.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

mach_fake_world mach_fake;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static unsigned long calls, fail_nth;
static int fail_mach, fail_errno;
static const char *failed_call = "";

static const char arguments[] = "\2\0\0\0/Applications/Viewer.app/v\0\0\0\0\0\0viewer\0--full\0"
                                "SECRET=hunter2\0HOME=/Library/x";

void mach_fake_reset(void) {
    uint64_t now_secs = (uint64_t)time(NULL);
    mach_fake = (mach_fake_world){.is_alive = true,
                                  .ended_us = 500000,
                                  .virtual_bytes = (uint64_t)400 << 30,
                                  .resident_bytes = (uint64_t)48 << 20,
                                  .heap_used_bytes = 1000000,
                                  .heap_held_bytes = 4000000,
                                  .read_bytes = 4096,
                                  .written_bytes = 8192,
                                  .numer = 125,
                                  .denom = 3,
                                  .kernel_hertz = 24000000,
                                  .absolute = 24000000ull * 1000,
                                  .started = 24000000ull * 900,
                                  .start_secs = now_secs - 100,
                                  .faults = 1200,
                                  .pageins = 200,
                                  .name = "Viewer",
                                  .command = "v",
                                  .path = "/Applications/Viewer.app/v",
                                  .directory = "/Library/x",
                                  .arguments = arguments,
                                  .arguments_bytes = sizeof arguments,
                                  .fd_count = 12,
                                  .has_frequency = true};
    (void)mach_fake_add(9007199254740993u, "main", 1500000, 250000);
    (void)mach_fake_add(258, "", 0, 0);
    (void)mach_fake_add(1041, "net-rx", 3000000, 10);
    mach_fake_fail(0, 0, 0);
}

mach_fake_thread *mach_fake_add(uint64_t id, const char *name, uint64_t user_us,
                                uint64_t system_us) {
    if (mach_fake.thread_count == MACH_FAKE_THREADS_MAX) {
        return NULL;
    }
    mach_fake_thread *thread = &mach_fake.threads[mach_fake.thread_count++];
    *thread = (mach_fake_thread){
        .id = id, .user_us = user_us, .system_us = system_us, .is_pthread = true};
    (void)snprintf(thread->name, sizeof thread->name, "%s", name);
    return thread;
}

void mach_fake_end(size_t index) {
    const mach_fake_thread *thread = &mach_fake.threads[index];
    mach_fake.ended_us += thread->user_us + thread->system_us;
    mach_fake.thread_count--;
    memmove(&mach_fake.threads[index], &mach_fake.threads[index + 1],
            (mach_fake.thread_count - index) * sizeof *thread);
}

void mach_fake_fail(unsigned long nth, int mach_code, int errno_code) {
    (void)pthread_mutex_lock(&lock);
    calls = 0;
    fail_nth = nth;
    fail_mach = mach_code;
    fail_errno = errno_code;
    failed_call = "";
    (void)pthread_mutex_unlock(&lock);
}

unsigned long mach_fake_calls(void) {
    return calls;
}

const char *mach_fake_failed_call(void) {
    return failed_call;
}

void mach_fake_hold(void) {
    (void)pthread_mutex_lock(&lock);
}

bool mach_fake_enter(const char *call) {
    mach_fake_hold();
    if (mach_fake.on_call != NULL) {
        mach_fake.on_call(call);
    }
    calls++;
    if (calls != fail_nth) {
        return true;
    }
    failed_call = call;
    return false;
}

void mach_fake_leave(void) {
    (void)pthread_mutex_unlock(&lock);
}

int mach_fake_mach_code(void) {
    return fail_mach;
}

int mach_fake_errno_code(void) {
    return fail_errno;
}

/* The allocations of the darwin sources, which are compiled to call these. */
void *mach_fake_malloc(size_t bytes);
void *mach_fake_calloc(size_t count, size_t bytes);

void *mach_fake_malloc(size_t bytes) {
    void *memory = mach_fake_enter("memory") ? malloc(bytes) : NULL;
    mach_fake_leave();
    return memory;
}

void *mach_fake_calloc(size_t count, size_t bytes) {
    void *memory = mach_fake_enter("memory") ? calloc(count, bytes) : NULL;
    mach_fake_leave();
    return memory;
}
