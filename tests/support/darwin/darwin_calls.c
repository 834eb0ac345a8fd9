#define DARWIN_CALLS_THEMSELVES
#include "support/darwin/darwin_calls.h"

#include <string.h>

#include "base/clock.h"

darwin_calls darwin;

int darwin_fcntl(int fd, int command) {
    (void)fd;
    enum { TOLD = sizeof darwin.full_sync_errors / sizeof darwin.full_sync_errors[0] };
    unsigned nth = darwin.full_sync_count++;
    errno = command != F_FULLFSYNC ? EINVAL : nth < TOLD ? darwin.full_sync_errors[nth] : 0;
    return errno != 0 ? -1 : 0;
}

int darwin_fsync(int fd) {
    darwin.sync_count++;
    if (darwin.sync_error != 0) {
        errno = darwin.sync_error;
        return -1;
    }
    return fsync(fd);
}

size_t darwin_confstr(int name, char *out, size_t out_bytes) {
    if (name != _CS_DARWIN_USER_TEMP_DIR || darwin.user_temp_dir == NULL) {
        return 0;
    }
    (void)snprintf(out, out_bytes, "%s", darwin.user_temp_dir);
    return strlen(darwin.user_temp_dir) + 1;
}

int issetugid(void) {
    return 0;
}

int darwin_setname(const char *name) {
    darwin.thread_name = name;
    return 0;
}

int renameatx_np(int from_dir, const char *from, int to_dir, const char *to, unsigned flags) {
    if (flags != RENAME_EXCL) {
        errno = EINVAL;
        return -1;
    }
    return renameat2(from_dir, from, to_dir, to, RENAME_NOREPLACE);
}

int pthread_threadid_np(const pthread_t *thread, uint64_t *ret_id) {
    if (thread != NULL) {
        return EINVAL;
    }
    *ret_id = (uint64_t)gettid();
    return 0;
}

int pthread_cond_timedwait_relative_np(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                       const struct timespec *left) {
    darwin.waited_ns = (uint64_t)left->tv_sec * BP_NS_PER_SEC + (uint64_t)left->tv_nsec;
    struct timespec until = bp_clock_timespec(bp_clock_wall_ns() + darwin.waited_ns);
    return darwin.skips_waits ? ETIMEDOUT : pthread_cond_timedwait(condition, mutex, &until);
}
