#include "recorder/session_lock.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>

#include "base/file.h"

#ifndef F_OFD_SETLK /* some macOS, where no session has files */
#define F_OFD_SETLK F_SETLK
#define F_OFD_GETLK F_GETLK
#endif

int bp_session_lock_take(int fd) {
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct flock held = whole; /* by a session the first byte, by a recovery all */
    if (fcntl(fd, F_OFD_SETLK, &whole) == 0) {
        return 0;
    }
    if (errno != EAGAIN) {
        return errno;
    }
    bool is_known = fcntl(fd, F_OFD_GETLK, &held) == 0 && held.l_type != F_UNLCK;
    return is_known && held.l_len == 1 ? EAGAIN : EBUSY;
}

void bp_session_lock_drop(int fd) {
    struct flock whole = {.l_type = F_UNLCK, .l_whence = SEEK_SET};
    if (fd >= 0) {
        (void)fcntl(fd, F_OFD_SETLK, &whole);
    }
    bp_file_close(fd);
}

enum { mapped_bytes = 4096 }; /* never touched: the file is empty */

void bp_session_lock_let_go(void *held) {
    if (held != NULL) {
        (void)munmap(held, mapped_bytes);
    }
}

/* macOS has such locks too, but there a mapping keeps the file, not its lock. */
#ifdef MADV_DONTFORK

const bool bp_session_lock_is_supported = true;

void *bp_session_lock_hold(int fd) {
    struct flock first = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
    if (fcntl(fd, F_OFD_SETLK, &first) != 0) {
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
