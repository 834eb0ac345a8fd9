/*
 * Directories, staged files and threads, as macOS has them.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/machine.h"
#include "platform/staged_file.h"
#include "platform/thread.h"

const char *bp_machine_environment(const char *name) {
    return issetugid() ? NULL : getenv(name);
}

bugpack_status bp_machine_report_directory(char *path, size_t path_bytes, bugpack_error *error) {
    const char *home = bp_machine_environment("HOME");
    if (home == NULL || home[0] != '/') {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "no report directory was given, and HOME names none");
    }
    int length = snprintf(path, path_bytes, "%s/Library/Application Support/bugpack", home);
    if (length < 0 || (size_t)length >= path_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the report directory's path is too long");
    }
    return BUGPACK_OK;
}

bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir) {
    char of_user[PATH_MAX];
    const char *base = bp_machine_environment("TMPDIR");
    if ((*cursor)++ > 0) {
        return false;
    }
    if (base == NULL || base[0] != '/') {
        /* A daemon has no TMPDIR; this asks for what a login would set it to. */
        size_t bytes = confstr(_CS_DARWIN_USER_TEMP_DIR, of_user, sizeof of_user);
        if (bytes == 0 || bytes > sizeof of_user || of_user[0] != '/') {
            return false;
        }
        base = of_user;
    }
    size_t base_bytes = strlen(base);
    while (base_bytes > 1 && base[base_bytes - 1] == '/') {
        base_bytes--; /* both end with one */
    }
    ret_dir->is_common = false;
    int length =
        snprintf(ret_dir->path, sizeof ret_dir->path, "%.*s/bugpack", (int)base_bytes, base);
    return base_bytes < sizeof ret_dir->path && length > 0 && (size_t)length < sizeof ret_dir->path;
}

/* A Mac has no files without a name, so each staged file has a temporary one. */
bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]) {
    (void)fd;
    (void)ret_path;
    return false;
}

/*
 * fsync leaves the bytes in the drive's cache; F_FULLFSYNC empties that as well (fsync(2) and
 * fcntl(2) of macOS). File systems without it say so with different errors. Only what the disk
 * itself reports is final: fsync, asked after that, may well succeed.
 */
int bp_staged_sync(int fd) {
    int result;
    do {
        result = fcntl(fd, F_FULLFSYNC);
    } while (result == -1 && errno == EINTR);
    if (result != -1) {
        return 0;
    }
    if (errno == EIO || errno == ENOSPC || errno == EDQUOT || errno == EBADF) {
        return -1;
    }
    do {
        result = fsync(fd);
    } while (result != 0 && errno == EINTR);
    return result;
}

int bp_staged_rename_new(int dir_fd, const char *from, const char *to) {
    return renameatx_np(dir_fd, from, dir_fd, to, RENAME_EXCL);
}

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
