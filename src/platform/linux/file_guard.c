#include "platform/file_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"

static const uint64_t retry_ns = 100 * BP_NS_PER_MS;

typedef struct guarded {
    struct guarded *next;
    int fd;
    bool has_yielded;
    bp_file_guard_yield *yield;
    void *context;
} guarded;

struct bp_file_guard {
    pthread_t thread; /* the one that waits, once `tid` is not 0 */
    atomic_bool is_woken;
    pthread_mutex_t mutex; /* of what follows; held while a file is yielded */
    pid_t tid;
    guarded *files;
};

/* Yields every file that somebody waits for. False when one could not be yielded yet. */
static bool yield_wanted(bp_file_guard *guard) {
    bool is_done = true;
    (void)pthread_mutex_lock(&guard->mutex);
    for (guarded *file = guard->files; file != NULL; file = file->next) {
        /* While a lease is being broken, F_GETLEASE returns what it has to become. Every file is
         * checked, because one pending SIGIO stands for any number of them. */
        if (file->has_yielded || fcntl(file->fd, F_GETLEASE) == F_WRLCK) {
            continue;
        }
        file->has_yielded = file->yield(file->context);
        is_done = is_done && file->has_yielded;
        if (file->has_yielded) {
            (void)fcntl(file->fd, F_SETLEASE, F_UNLCK);
        }
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    return is_done;
}

/* Waits for SIGIO, or until the deadline; UINT64_MAX is none. */
static void wait_for_signal(const sigset_t *signals, uint64_t deadline_ns) {
    if (deadline_ns == UINT64_MAX) {
        (void)sigwaitinfo(signals, NULL);
        return;
    }
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct timespec left = bp_clock_timespec(left_ns);
    (void)sigtimedwait(signals, NULL, &left);
}

bool bp_file_guard_is_supported(void) {
    return true;
}

bugpack_status bp_file_guard_new(bp_file_guard **ret_guard, bugpack_error *error) {
    bp_file_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL || pthread_mutex_init(&guard->mutex, NULL) != 0) {
        free(guard);
        return bp_fail_memory(error, "guard files");
    }
    atomic_init(&guard->is_woken, false);
    *ret_guard = guard;
    return BUGPACK_OK;
}

void bp_file_guard_free(bp_file_guard *guard) {
    if (guard != NULL) {
        (void)pthread_mutex_destroy(&guard->mutex);
        free(guard);
    }
}

void bp_file_guard_bind(bp_file_guard *guard) {
    guard->thread = pthread_self();
    (void)pthread_mutex_lock(&guard->mutex);
    guard->tid = gettid();
    (void)pthread_mutex_unlock(&guard->mutex);
}

void bp_file_guard_wait(bp_file_guard *guard, uint64_t deadline_ns) {
    sigset_t signals;
    bool is_done = true;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGIO);
    do {
        uint64_t retry_at_ns = is_done ? UINT64_MAX : bp_clock_monotonic_ns() + retry_ns;
        wait_for_signal(&signals, retry_at_ns < deadline_ns ? retry_at_ns : deadline_ns);
        is_done = yield_wanted(guard);
    } while (!atomic_exchange(&guard->is_woken, false) && bp_clock_monotonic_ns() < deadline_ns);
}

void bp_file_guard_wake(bp_file_guard *guard) {
    atomic_store(&guard->is_woken, true);
    (void)pthread_kill(guard->thread, SIGIO); /* to that thread alone, which has it blocked */
}

/* The owner is set first: F_SETLEASE would choose the whole process, and with it the host. */
static int take_lease(int fd, pid_t tid) {
    const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
    if (fcntl(fd, F_SETOWN_EX, &owner) != 0 || fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        return errno;
    }
    return 0;
}

bugpack_status bp_file_guard_add(bp_file_guard *guard, int fd, bp_file_guard_yield *yield,
                                 void *context, bugpack_error *error) {
    guarded *file = malloc(sizeof *file);
    if (file == NULL) {
        return bp_fail_memory(error, "guard a file");
    }
    (void)pthread_mutex_lock(&guard->mutex);
    *file = (guarded){.next = guard->files, .fd = fd, .yield = yield, .context = context};
    int lease_errno = take_lease(fd, guard->tid);
    if (lease_errno == 0) {
        guard->files = file;
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    if (lease_errno == 0) {
        return BUGPACK_OK;
    }
    free(file);
    (void)bp_fail_errno(error, lease_errno, "a file cannot be guarded against truncation");
    if (error != NULL) {
        error->status = BUGPACK_ERR_UNSUPPORTED;
    }
    return BUGPACK_ERR_UNSUPPORTED;
}

void bp_file_guard_remove(bp_file_guard *guard, int fd) {
    (void)pthread_mutex_lock(&guard->mutex);
    guarded **link = &guard->files;
    while (*link != NULL && (*link)->fd != fd) {
        link = &(*link)->next;
    }
    guarded *file = *link;
    if (file != NULL) {
        *link = file->next;
        (void)fcntl(fd, F_SETLEASE, F_UNLCK);
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    free(file);
}

void bp_file_guard_clear(bp_file_guard *guard) {
    while (guard->files != NULL) {
        bp_file_guard_remove(guard, guard->files->fd);
    }
}
