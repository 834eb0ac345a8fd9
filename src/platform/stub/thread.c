#include "platform/thread.h"

#include "base/clock.h"

uint64_t bp_thread_id(void) {
    /* Unique among running threads, which is enough for log records. */
    static _Thread_local char here;
    return (uint64_t)(uintptr_t)&here;
}

void bp_thread_set_name(const char *name) {
    (void)name;
}

/* POSIX alone can only wait by the wall clock. Short waits keep a jump of that clock short too. */
static const uint64_t longest_wait_ns = BP_NS_PER_SEC / 4;

bool bp_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                             uint64_t deadline_ns) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    if (now_ns >= deadline_ns) {
        return false;
    }
    uint64_t left_ns = deadline_ns - now_ns;
    left_ns = left_ns < longest_wait_ns ? left_ns : longest_wait_ns;
    struct timespec until = bp_clock_timespec(bp_clock_wall_ns() + left_ns);
    (void)pthread_cond_timedwait(condition, mutex, &until);
    return true;
}
