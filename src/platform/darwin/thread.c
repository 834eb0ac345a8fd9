#include "platform/thread.h"

#include <errno.h>

#include "base/clock.h"

uint64_t bp_thread_id(void) {
    /* The id of THREAD_IDENTIFIER_INFO. No system call: libpthread keeps it with the thread, and
     * asks anew in the child of a fork. */
    uint64_t id = 0;
    (void)pthread_threadid_np(NULL, &id);
    return id;
}

void bp_thread_set_name(const char *name) {
    (void)pthread_setname_np(name);
}

/* A condition variable's clock cannot be chosen here, but a relative wait is measured by a clock
 * that stops in sleep, as bp_clock_monotonic_ns does. */
bool bp_condition_wait_until(pthread_cond_t *condition, pthread_mutex_t *mutex,
                             uint64_t deadline_ns) {
    uint64_t now_ns = bp_clock_monotonic_ns();
    if (now_ns >= deadline_ns) {
        return false;
    }
    /* A year is as good as for ever, and no length that the kernel has to compute with. */
    const uint64_t longest_ns = 365ull * 86400 * BP_NS_PER_SEC;
    uint64_t left_ns = deadline_ns - now_ns < longest_ns ? deadline_ns - now_ns : longest_ns;
    struct timespec left = bp_clock_timespec(left_ns);
    return pthread_cond_timedwait_relative_np(condition, mutex, &left) != ETIMEDOUT ||
           left_ns == longest_ns;
}
