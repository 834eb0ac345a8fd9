#include "platform/file_guard.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/status.h"
#include "platform/thread.h"

/* Nothing is done with what is given. */
#pragma GCC diagnostic ignored "-Wunused-parameter"

struct bp_file_guard {
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    bool is_woken;
};

bool bp_file_guard_is_supported(void) {
    return false;
}

bugpack_status bp_file_guard_new(bp_file_guard **ret_guard, bugpack_error *error) {
    bp_file_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL || pthread_mutex_init(&guard->mutex, NULL) != 0) {
        free(guard);
        return bp_fail_memory(error, "guard files");
    }
    bugpack_status status = bp_condition_init(&guard->woken, error);
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&guard->mutex);
        free(guard);
        return status;
    }
    *ret_guard = guard;
    return BUGPACK_OK;
}

void bp_file_guard_free(bp_file_guard *guard) {
    if (guard != NULL) {
        (void)pthread_cond_destroy(&guard->woken);
        (void)pthread_mutex_destroy(&guard->mutex);
        free(guard);
    }
}

void bp_file_guard_bind(bp_file_guard *guard) {
}

bool bp_file_guard_wait(bp_file_guard *guard, uint64_t deadline_ns) {
    (void)pthread_mutex_lock(&guard->mutex);
    while (!guard->is_woken) {
        if (deadline_ns == UINT64_MAX) {
            (void)pthread_cond_wait(&guard->woken, &guard->mutex);
        } else if (!bp_condition_wait_until(&guard->woken, &guard->mutex, deadline_ns)) {
            break;
        }
    }
    bool was_woken = guard->is_woken;
    guard->is_woken = false;
    (void)pthread_mutex_unlock(&guard->mutex);
    return was_woken;
}

bool bp_file_guard_announce(bp_file_guard *guard, int fd) {
    errno = ENOTSUP;
    return false;
}

void bp_file_guard_wake(bp_file_guard *guard) {
    (void)pthread_mutex_lock(&guard->mutex);
    guard->is_woken = true;
    (void)pthread_cond_signal(&guard->woken);
    (void)pthread_mutex_unlock(&guard->mutex);
}

bugpack_status bp_file_guard_add(bp_file_guard *guard, int fd, bp_file_guard_yield *yield,
                                 void *context, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "a file cannot be guarded here");
}

bugpack_status bp_file_guard_replace(bp_file_guard *guard, int fd, const void *context,
                                     bugpack_error *error) {
    return bp_file_guard_add(guard, fd, NULL, (void *)(uintptr_t)context, error);
}

void bp_file_guard_remove(bp_file_guard *guard, const void *context) {
}

void bp_file_guard_clear(bp_file_guard *guard) {
}
