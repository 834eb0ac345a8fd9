#include "platform/file_guard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/fd_mark.h"
#include "base/file.h"
#include "base/lock.h"
#include "base/status.h"

static const size_t locks_max_bytes = (size_t)1 << 20;

/* Apart from that of leases and sockets: one pending signal stands for any number of its kind, and
 * only SIGIO makes it necessary to look at the files. Ignored unless it is blocked. */
enum { wake_signal = SIGURG };

/* No wait is longer. The second is for a thread that no signal reaches, because a filter refuses
 * tgkill or sigtimedwait (seccomp(2)): it looks so often whether it was woken. */
static const uint64_t wait_max_ns = BP_NS_PER_SEC;
static const uint64_t look_ns = 20 * BP_NS_PER_MS;

typedef struct guarded {
    struct guarded *next;
    bp_fd_mark mark;
    uint64_t due_ns; /* when it is called in any case */
    bp_file_guard_yield *yield;
    void *context;
} guarded;

struct bp_file_guard {
    pid_t pid,
        tid; /* of the thread that waits; `tid` is not above 0 where it cannot be signalled */
    atomic_bool is_woken;
    atomic_bool is_unreachable;
    bp_lock lock; /* of what follows; held while a file is yielded */
    guarded *files;
};

/* The inodes of the files whose leases are whole, in ascending order. */
typedef struct leases {
    unsigned long long *inodes;
    size_t count, capacity;
    bool is_known; /* else each file could be the one that somebody waits for */
} leases;

static int compare_inodes(const void *left, const void *right) {
    unsigned long long a = *(const unsigned long long *)left;
    unsigned long long b = *(const unsigned long long *)right;
    return (a > b) - (a < b);
}

/*
 * Adds what /proc/locks lists: no descriptor of a file is held that could be asked (F_GETLEASE).
 * The device is not compared: on overlayfs and btrfs stat(2) names another one than the kernel does
 * here. This process and the inode are enough.
 */
static void add_leases(leases *found, pid_t own_pid) {
    bp_buffer locks;
    bp_buffer_init(&locks, locks_max_bytes);
    found->is_known = bp_file_read_at(AT_FDCWD, "/proc/locks", &locks, NULL) == BUGPACK_OK;
    for (const char *line = bp_buffer_text(&locks); found->is_known && *line != '\0';) {
        int pid = 0;
        unsigned long long inode = 0;
        if (sscanf(line, "%*u: LEASE ACTIVE WRITE %d %*x:%*x:%llu", &pid, &inode) == 2 &&
            pid == own_pid) {
            found->is_known = bp_array_reserve(&found->inodes, found->count, &found->capacity);
            if (found->is_known) {
                found->inodes[found->count++] = inode;
            }
        }
        line += strcspn(line, "\n");
        line += *line == '\n';
    }
    if (found->count > 0) {
        qsort(found->inodes, found->count, sizeof found->inodes[0], compare_inodes);
    }
    bp_buffer_release(&locks);
}

static bool is_lease_whole(const leases *found, bp_fd_mark mark) {
    const unsigned long long inode = mark.inode;
    return found->is_known && found->count > 0 &&
           bsearch(&inode, found->inodes, found->count, sizeof inode, compare_inodes) != NULL;
}

/*
 * Which of the guarded files nobody waits for. The kernel gives /proc/locks in pages, and leaves
 * out what another opening or closing moves from one page to the other meanwhile: so it is read
 * again where a lease is missing. A lease that ends after it was listed raises the next signal. The
 * lock is held.
 */
static void find_leases(const bp_file_guard *guard, leases *found) {
    enum { attempt_max = 3 };
    const guarded *file = guard->files;
    for (unsigned i = 0; file != NULL && i < attempt_max; i++) {
        add_leases(found, guard->pid);
        file = guard->files;
        while (file != NULL && is_lease_whole(found, file->mark)) {
            file = file->next;
        }
    }
}

/*
 * Yields every file that somebody waits for, and calls whoever asked for it. Returns when the next
 * call is due. Every file is checked, because one pending SIGIO stands for any number of them.
 */
static uint64_t yield_files(bp_file_guard *guard, bool has_signal) {
    leases found = {.count = 0};
    uint64_t due_ns = UINT64_MAX;
    bp_lock_acquire(&guard->lock);
    if (has_signal) {
        find_leases(guard, &found);
    }
    for (guarded *file = guard->files; file != NULL; file = file->next) {
        uint64_t now_ns = bp_clock_monotonic_ns();
        if (file->due_ns <= now_ns || (has_signal && !is_lease_whole(&found, file->mark))) {
            file->due_ns = file->yield(file->context, now_ns);
        }
        due_ns = file->due_ns < due_ns ? file->due_ns : due_ns;
    }
    bp_lock_release(&guard->lock);
    free(found.inodes);
    return due_ns;
}

/* Waits for either signal, or until the deadline, and never longer than wait_max_ns. Whether SIGIO
 * came. */
static bool wait_for_signal(bp_file_guard *guard, uint64_t deadline_ns) {
    sigset_t signals;
    uint64_t now_ns = bp_clock_monotonic_ns();
    uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    (void)sigemptyset(&signals);
    (void)sigaddset(&signals, SIGIO);
    (void)sigaddset(&signals, wake_signal);
    left_ns = left_ns < wait_max_ns ? left_ns : wait_max_ns;
    if (atomic_load(&guard->is_unreachable)) {
        bp_clock_sleep_until(now_ns + (left_ns < look_ns ? left_ns : look_ns));
        left_ns = 0;
    }
    struct timespec left = bp_clock_timespec(left_ns);
    int number = sigtimedwait(&signals, NULL, &left);
    if (number < 0 && errno != EAGAIN && errno != EINTR) {
        atomic_store(&guard->is_unreachable, true);
    }
    return number == SIGIO;
}

bool bp_file_guard_is_supported(void) {
    return true;
}

bugpack_status bp_file_guard_new(bp_file_guard **ret_guard, bugpack_error *error) {
    bp_file_guard *guard = calloc(1, sizeof *guard);
    if (guard == NULL || !bp_lock_init(&guard->lock, BP_LOCK_FILE_GUARD)) {
        free(guard);
        return bp_fail_memory(error, "guard files");
    }
    atomic_init(&guard->is_woken, false);
    atomic_init(&guard->is_unreachable, false);
    *ret_guard = guard;
    return BUGPACK_OK;
}

void bp_file_guard_free(bp_file_guard *guard) {
    if (guard != NULL) {
        bp_lock_destroy(&guard->lock);
        free(guard);
    }
}

/* Without a mask a SIGIO would end the host. */
static bool has_blocked_signals(void) {
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && sigismember(&blocked, SIGIO) == 1 &&
           sigismember(&blocked, wake_signal) == 1;
}

void bp_file_guard_bind(bp_file_guard *guard) {
    guard->pid = getpid();
    guard->tid = has_blocked_signals() ? gettid() : 0;
}

bool bp_file_guard_wait(bp_file_guard *guard, uint64_t deadline_ns) {
    uint64_t due_ns = yield_files(guard, false);
    bool has_signal, was_woken;
    do {
        has_signal = wait_for_signal(guard, due_ns < deadline_ns ? due_ns : deadline_ns);
        due_ns = yield_files(guard, has_signal);
        was_woken = atomic_exchange(&guard->is_woken, false);
    } while (!was_woken && !has_signal && bp_clock_monotonic_ns() < deadline_ns);
    return was_woken || has_signal;
}

/* One system call, and none where a wake is under way: pthread_kill makes four. The thread lives as
 * long as the guard. */
void bp_file_guard_wake(bp_file_guard *guard) {
    if (!atomic_exchange(&guard->is_woken, true) &&
        syscall(SYS_tgkill, guard->pid, guard->tid, wake_signal) != 0) {
        atomic_store(&guard->is_unreachable, true);
    }
}

/* Its signals go to the waiting thread alone, which has them blocked. */
static bool own(int fd, const bp_file_guard *guard) {
    const struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = guard->tid};
    errno = EPERM;
    return guard->tid > 0 && fcntl(fd, F_SETOWN_EX, &owner) == 0;
}

bool bp_file_guard_announce(bp_file_guard *guard, int fd) {
    int flags = fcntl(fd, F_GETFL);
    return flags >= 0 && own(fd, guard) && fcntl(fd, F_SETFL, flags | O_ASYNC) == 0;
}

/* The owner is set first: F_SETLEASE would choose the whole process, and with it the host. */
static bugpack_status take_lease(const bp_file_guard *guard, int fd, bugpack_error *error) {
    if (own(fd, guard) && fcntl(fd, F_SETLEASE, F_WRLCK) == 0) {
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
    bp_lock_acquire(&guard->lock);
    *file = (guarded){.next = guard->files,
                      .mark = bp_fd_mark_of(fd),
                      .due_ns = UINT64_MAX,
                      .yield = yield,
                      .context = context};
    bugpack_status status = take_lease(guard, fd, error);
    if (status == BUGPACK_OK) {
        guard->files = file;
    }
    bp_lock_release(&guard->lock);
    if (status != BUGPACK_OK) {
        free(file);
    }
    return status;
}

/* The link to the file of this context, or to the end of the list. The lock is held. */
static guarded **find(bp_file_guard *guard, const void *context) {
    guarded **link = &guard->files;
    while (*link != NULL && (*link)->context != context) {
        link = &(*link)->next;
    }
    return link;
}

bugpack_status bp_file_guard_replace(bp_file_guard *guard, int fd, const void *context,
                                     bugpack_error *error) {
    bugpack_status status = take_lease(guard, fd, error);
    if (status == BUGPACK_OK) {
        (*find(guard, context))->mark = bp_fd_mark_of(fd);
    }
    return status;
}

void bp_file_guard_remove(bp_file_guard *guard, const void *context) {
    bp_lock_acquire(&guard->lock);
    guarded **link = find(guard, context);
    guarded *file = *link;
    if (file != NULL) {
        *link = file->next;
    }
    bp_lock_release(&guard->lock);
    free(file);
}

void bp_file_guard_clear(bp_file_guard *guard) {
    while (guard->files != NULL) {
        bp_file_guard_remove(guard, guard->files->context);
    }
}
