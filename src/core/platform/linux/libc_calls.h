/*
 * statx(2) and renameat2(2), which musl has since 1.2.4. Where it has them, it has the constants as
 * well, and a struct that would collide with the kernel's.
 */
#ifndef BP_PLATFORM_LINUX_LIBC_CALLS_H
#define BP_PLATFORM_LINUX_LIBC_CALLS_H

#include <stdio.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef STATX_BASIC_STATS
#include <linux/stat.h>
static inline int statx(int dir_fd, const char *path, int flags, unsigned mask,
                        struct statx *ret_info) {
    return (int)syscall(SYS_statx, dir_fd, path, flags, mask, ret_info);
}
#endif

#ifndef RENAME_NOREPLACE
#include <linux/fs.h>
static inline int renameat2(int from_fd, const char *from, int to_fd, const char *to,
                            unsigned flags) {
    return (int)syscall(SYS_renameat2, from_fd, from, to_fd, to, flags);
}
#endif

#endif
