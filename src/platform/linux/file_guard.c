#include "platform/file_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/thread.h"

static const uint64_t retry_ns = 100 * BP_NS_PER_MS;

typedef struct guarded {
    struct guarded *next;
    int fd;
    bool has_yielded;
    bp_file_guard_yield *yield;
    void *context;
} guarded;

struct bp_file_guard {
    pthread_t thread;
    uint64_t tick_ns; /* 0: none */
    bp_file_guard_tick *tick;
    void *tick_context;
    atomic_bool is_stopping;
    pthread_mutex_t mutex; /* guards what follows; held while a file is yielded */
    pthread_cond_t started;
    pid_t tid; /* 0 until the thread runs */
    guarded *files;
};

/* Yields every file that somebody waits for. False when one could not be let go yet. */
static bool yield_wanted(bp_file_guard *guard) {
    bool is_done = true;
    (void)pthread_mutex_lock(&guard->mutex);
    for (guarded *file = guard->files; file != NULL; file = file->next) {
        /* While a lease is being broken this tells what it has to become. Each is asked, because
         * one pending SIGIO stands for any number of them. */
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
    struct timespec left = {.tv_sec = (time_t)(left_ns / BP_NS_PER_SEC),
                            .tv_nsec = (long)(left_ns % BP_NS_PER_SEC)};
    (void)sigtimedwait(signals, NULL, &left);
}

static void *run_guard(void *argument) {
    bp_file_guard *guard = argument;
    bp_thread_set_name("bugpack-guard");
    (void)pthread_mutex_lock(&guard->mutex);
    guard->tid = gettid();
    (void)pthread_cond_signal(&guard->started);
    (void)pthread_mutex_unlock(&guard->mutex);
    sigset_t signals;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGIO);
    uint64_t next_tick_ns =
        guard->tick_ns > 0 ? bp_clock_monotonic_ns() + guard->tick_ns : UINT64_MAX;
    uint64_t deadline_ns = next_tick_ns;
    for (;;) {
        wait_for_signal(&signals, deadline_ns);
        if (atomic_load(&guard->is_stopping)) {
            return NULL;
        }
        bool is_done = yield_wanted(guard);
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (now_ns >= next_tick_ns) {
            guard->tick(guard->tick_context);
            now_ns = bp_clock_monotonic_ns();
            next_tick_ns += ((now_ns - next_tick_ns) / guard->tick_ns + 1) * guard->tick_ns;
        }
        deadline_ns =
            is_done || next_tick_ns < now_ns + retry_ns ? next_tick_ns : now_ns + retry_ns;
    }
}

bugpack_status bp_file_guard_start(uint32_t tick_ms, bp_file_guard_tick *tick, void *tick_context,
                                   bp_file_guard **ret_guard, bugpack_error *error) {
    if (tick != NULL && tick_ms == 0) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a tick needs an interval");
    }
    bp_file_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL) {
        return bp_fail_memory(error, "guard files");
    }
    guard->tick_ns = tick != NULL ? tick_ms * BP_NS_PER_MS : 0;
    guard->tick = tick;
    guard->tick_context = tick_context;
    atomic_init(&guard->is_stopping, false);
    (void)pthread_mutex_init(&guard->mutex, NULL); /* neither can fail with default attributes */
    (void)pthread_cond_init(&guard->started, NULL);
    bugpack_status status = bp_thread_start(run_guard, guard, &guard->thread, error);
    if (status != BUGPACK_OK) {
        (void)pthread_cond_destroy(&guard->started);
        (void)pthread_mutex_destroy(&guard->mutex);
        free(guard);
        return status;
    }
    (void)pthread_mutex_lock(&guard->mutex);
    while (guard->tid == 0) {
        (void)pthread_cond_wait(&guard->started, &guard->mutex);
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    *ret_guard = guard;
    return BUGPACK_OK;
}

/* Who is told comes first: F_SETLEASE would choose the whole process, and with it the host. */
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

void bp_file_guard_stop(bp_file_guard *guard) {
    if (guard == NULL) {
        return;
    }
    atomic_store(&guard->is_stopping, true);
    /* To that thread alone, which has it blocked. */
    (void)pthread_kill(guard->thread, SIGIO);
    (void)pthread_join(guard->thread, NULL);
    while (guard->files != NULL) {
        bp_file_guard_remove(guard, guard->files->fd);
    }
    (void)pthread_cond_destroy(&guard->started);
    (void)pthread_mutex_destroy(&guard->mutex);
    free(guard);
}
