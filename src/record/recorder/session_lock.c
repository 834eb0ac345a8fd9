#include "recorder/session_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/lock.h"

/* Few names, used at open, close and recovery only. */
static bp_lock held_lock = BP_LOCK_INIT(BP_LOCK_SESSION_NAMES);
static struct held_name {
    struct held_name *next;
    pid_t pid; /* a forked child inherits the list, and owns nothing of it */
    char name[256];
} * held_names;

bugpack_status bp_session_lock_claim(const char *name) {
    struct held_name *claimed = calloc(1, sizeof *claimed);
    if (claimed == NULL) {
        return BUGPACK_ERR_NO_MEMORY;
    }
    claimed->pid = getpid();
    (void)snprintf(claimed->name, sizeof claimed->name, "%s", name);
    bool is_free = true;
    bp_lock_acquire(&held_lock);
    for (const struct held_name *held = held_names; held != NULL; held = held->next) {
        is_free = is_free && (held->pid != claimed->pid || strcmp(held->name, name) != 0);
    }
    if (is_free) {
        claimed->next = held_names;
        held_names = claimed;
    }
    bp_lock_release(&held_lock);
    if (!is_free) {
        free(claimed);
    }
    return is_free ? BUGPACK_OK : BUGPACK_ERR_BUSY;
}

void bp_session_lock_release(const char *name) {
    bp_lock_acquire(&held_lock);
    struct held_name **link = &held_names;
    while (*link != NULL && ((*link)->pid != getpid() || strcmp((*link)->name, name) != 0)) {
        link = &(*link)->next;
    }
    struct held_name *released = *link;
    if (released != NULL) {
        *link = released->next;
    }
    bp_lock_release(&held_lock);
    free(released);
}

int bp_session_lock_take(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_SETLK, &whole) == 0) {
        return 0;
    }
    return errno == EACCES ? EAGAIN : errno; /* fcntl(2): POSIX allows either */
}

int64_t bp_session_lock_holder(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_GETLK, &whole) != 0 || whole.l_type == F_UNLCK) {
        return BP_SESSION_LOCK_NOBODY;
    }
    /* The kernel says -1 for a lock that belongs to no process. */
    return whole.l_pid < 0 ? BP_SESSION_LOCK_SESSION : whole.l_pid;
}

enum { mapped_bytes = 4096 }; /* never touched: the file is empty */

void bp_session_lock_let_go(void *held) {
    if (held != NULL) {
        (void)munmap(held, mapped_bytes);
    }
}

/* macOS has such locks too, but there a mapping keeps the file, not its lock. */
#if defined F_OFD_SETLK && defined MADV_DONTFORK

const bool bp_session_lock_is_supported = true;

void *bp_session_lock_hold(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_SETLK, &whole) != 0) {
        return NULL;
    }
    void *held = mmap(NULL, mapped_bytes, PROT_NONE, MAP_SHARED, fd, 0);
    if (held == MAP_FAILED) {
        return NULL;
    }
    if (madvise(held, mapped_bytes, MADV_DONTFORK) != 0) {
        bp_session_lock_let_go(held);
        return NULL;
    }
    return held;
}

#else

const bool bp_session_lock_is_supported = false;

void *bp_session_lock_hold(int fd) {
    (void)fd;
    return NULL;
}

#endif
