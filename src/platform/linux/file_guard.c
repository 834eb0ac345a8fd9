#include "platform/file_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd_mark.h"
#include "base/file.h"
#include "base/status.h"

static const size_t locks_max_bytes = (size_t)1 << 20;

typedef struct guarded {
    struct guarded *next;
    bp_fd_mark mark;
    uint64_t due_ns; /* when it is called in any case */
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

/*
 * Whether the lease of this file is listed as whole, in a copy of /proc/locks. No descriptor of the
 * file is held that could be asked (F_GETLEASE). The device is not compared: on overlayfs and btrfs
 * stat(2) names another one than the kernel does here. This process and the inode are enough.
 */
static bool is_lease_whole(const char *locks, bp_fd_mark mark) {
    for (const char *line = locks; line != NULL && *line != '\0';) {
        int pid = 0;
        unsigned long long inode = 0;
        if (sscanf(line, "%*u: LEASE ACTIVE WRITE %d %*x:%*x:%llu", &pid, &inode) == 2 &&
            pid == getpid() && inode == mark.inode) {
            return true;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return false;
}

/*
 * Yields every file that somebody waits for, and calls whoever asked for it. Returns when the next
 * call is due. Every file is checked, because one pending SIGIO stands for any number of them.
 * Without /proc each could be the one.
 */
static uint64_t yield_files(bp_file_guard *guard, bool has_signal) {
    bp_buffer locks;
    uint64_t due_ns = UINT64_MAX;
    bp_buffer_init(&locks, locks_max_bytes);
    (void)pthread_mutex_lock(&guard->mutex);
    if (has_signal && guard->files != NULL &&
        bp_file_read_at(AT_FDCWD, "/proc/locks", &locks, NULL) != BUGPACK_OK) {
        bp_buffer_clear(&locks);
    }
    const char *text = bp_buffer_text(&locks);
    for (guarded *file = guard->files; file != NULL; file = file->next) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (file->due_ns <= now_ns || (has_signal && !is_lease_whole(text, file->mark))) {
            file->due_ns = file->yield(file->context, now_ns);
        }
        due_ns = file->due_ns < due_ns ? file->due_ns : due_ns;
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    bp_buffer_release(&locks);
    return due_ns;
}

/* Waits for SIGIO, or until the deadline; UINT64_MAX is none. Whether it came. */
static bool wait_for_signal(const sigset_t *signals, uint64_t deadline_ns) {
    if (deadline_ns == UINT64_MAX) {
        return sigwaitinfo(signals, NULL) > 0;
    }
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    struct timespec left = bp_clock_timespec(left_ns);
    return sigtimedwait(signals, NULL, &left) > 0;
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

bool bp_file_guard_wait(bp_file_guard *guard, uint64_t deadline_ns) {
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGIO);
    uint64_t due_ns = yield_files(guard, false);
    bool has_signal;
    do {
        has_signal = wait_for_signal(&signals, due_ns < deadline_ns ? due_ns : deadline_ns);
        due_ns = yield_files(guard, has_signal);
    } while (!atomic_exchange(&guard->is_woken, false) && !has_signal &&
             bp_clock_monotonic_ns() < deadline_ns);
    return has_signal;
}

void bp_file_guard_wake(bp_file_guard *guard) {
    atomic_store(&guard->is_woken, true);
    (void)pthread_kill(guard->thread, SIGIO); /* to that thread alone, which has it blocked */
}

bool bp_file_guard_announce(bp_file_guard *guard, int fd) {
    (void)pthread_mutex_lock(&guard->mutex);
    const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = guard->tid};
    (void)pthread_mutex_unlock(&guard->mutex);
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && fcntl(fd, F_SETOWN_EX, &owner) == 0 &&
           fcntl(fd, F_SETFL, flags | O_ASYNC) == 0;
}

/* The owner is set first: F_SETLEASE would choose the whole process, and with it the host. */
static bugpack_status take_lease(int fd, pid_t tid, bugpack_error *error) {
    const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = tid};
    if (fcntl(fd, F_SETOWN_EX, &owner) == 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
        return BUGPACK_OK;
    }
    (void)bp_fail_errno(error, errno, "a file cannot be guarded against truncation");
    if (error != NULL) {
        error->status = BUGPACK_ERR_UNSUPPORTED;
    }
    return BUGPACK_ERR_UNSUPPORTED;
}

bugpack_status bp_file_guard_add(bp_file_guard *guard, int fd, bp_file_guard_yield *yield,
                                 void *context, bugpack_error *error) {
    guarded *file = malloc(sizeof *file);
    if (file == NULL) {
        return bp_fail_memory(error, "guard a file");
    }
    (void)pthread_mutex_lock(&guard->mutex);
    *file = (guarded){.next = guard->files,
                      .mark = bp_fd_mark_of(fd),
                      .due_ns = UINT64_MAX,
                      .yield = yield,
                      .context = context};
    bugpack_status status = take_lease(fd, guard->tid, error);
    if (status == BUGPACK_OK) {
        guard->files = file;
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    if (status != BUGPACK_OK) {
        free(file);
    }
    return status;
}

/* The link to the file of this context, or to the end of the list. The mutex is held. */
static guarded **find(bp_file_guard *guard, const void *context) {
    guarded **link = &guard->files;
    while (*link != NULL && (*link)->context != context) {
        link = &(*link)->next;
    }
    return link;
}

bugpack_status bp_file_guard_replace(bp_file_guard *guard, int fd, const void *context,
                                     bugpack_error *error) {
    bugpack_status status = take_lease(fd, guard->tid, error);
    if (status == BUGPACK_OK) {
        (*find(guard, context))->mark = bp_fd_mark_of(fd);
    }
    return status;
}

void bp_file_guard_remove(bp_file_guard *guard, const void *context) {
    (void)pthread_mutex_lock(&guard->mutex);
    guarded **link = find(guard, context);
    guarded *file = *link;
    if (file != NULL) {
        *link = file->next;
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    free(file);
}

void bp_file_guard_clear(bp_file_guard *guard) {
    while (guard->files != NULL) {
        bp_file_guard_remove(guard, guard->files->context);
    }
}
