/*
 * A file system without O_TMPFILE: this program's own openat, linked before libc's, refuses the
 * flag while `has_no_tmpfile` is set. Included by one file of a program.
 */
#ifndef TESTS_SUPPORT_NO_TMPFILE_H
#define TESTS_SUPPORT_NO_TMPFILE_H

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool has_no_tmpfile;

int openat(int dir_fd, const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    int mode =
        (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE ? va_arg(arguments, int) : 0;
    va_end(arguments);
    if (has_no_tmpfile && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, dir_fd, path, flags, mode);
}

#endif
