/*
 * The least that a system needs.
 */
#include <errno.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/machine.h"
#include "platform/staged_file.h"
#include "platform/stream.h"
#include "platform/thread.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    return false;
}

bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]) {
    return false;
}

int bp_staged_sync(int fd) {
    int result;
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    errno = ENOTSUP; /* POSIX has no rename that refuses to replace */
    return -1;
}

/* The BSDs and macOS have funopen(3) for this. */
bugpack_status bp_stream_open(const bp_stream_calls *calls, void *context, FILE **ret_stream,
                              bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "this system has no streams of our own making");
}

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
