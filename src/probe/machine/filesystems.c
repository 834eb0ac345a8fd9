/* The file systems that a process uses. */
#include "machine/machine_private.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/file.h"
#include "platform/linux/files.h"
#include "platform/linux/libc_calls.h"

enum { path_bytes_max = 4096 };

static const size_t mounts_bytes_max = (size_t)1 << 20;

/* False where the system makes the files up, as in /proc, or its numbers do not fit. */
static bool measure(const struct statvfs *info, bp_filesystem *filesystem) {
    uint64_t used = info->f_blocks > info->f_bfree ? info->f_blocks - info->f_bfree : 0;
    filesystem->inode_count = info->f_files;
    filesystem->inodes_free = info->f_ffree;
    filesystem->is_read_only = (info->f_flag & ST_RDONLY) != 0;
    return info->f_blocks > 0 &&
           !__builtin_mul_overflow(info->f_blocks, info->f_frsize, &filesystem->total_bytes) &&
           !__builtin_mul_overflow(used, info->f_frsize, &filesystem->used_bytes) &&
           !__builtin_mul_overflow(info->f_bavail, info->f_frsize, &filesystem->available_bytes);
}

struct filesystems {
    bp_system *system;
    dev_t devices[BP_SYSTEM_FILESYSTEM_MAX];
    unsigned long ids[BP_SYSTEM_FILESYSTEM_MAX]; /* 0: not known. Files of overlayfs differ in the
                                                    device, but not in this */
};

/*
 * The file system of a descriptor, which is closed; one may be mounted in several places, and be
 * read-only in some. NULL where it is not ours to see, is none with a size, or is one too many.
 */
static bp_filesystem *take_filesystem(struct filesystems *all, int fd) {
    bp_system *system = all->system;
    bp_filesystem found = {.file = NULL};
    struct statvfs info;
    struct stat file;
    size_t at = 0;
    bool is_measured =
        fd >= 0 && fstat(fd, &file) == 0 && fstatvfs(fd, &info) == 0 && measure(&info, &found);
    bp_file_close(fd);
    while (
        is_measured && at < system->filesystem_count &&
        ((all->devices[at] != file.st_dev && (info.f_fsid == 0 || all->ids[at] != info.f_fsid)) ||
         system->filesystems[at].is_read_only != found.is_read_only)) {
        at++;
    }
    if (!is_measured || at == BP_SYSTEM_FILESYSTEM_MAX) {
        return NULL;
    }
    if (at == system->filesystem_count) {
        all->devices[at] = file.st_dev;
        all->ids[at] = info.f_fsid;
        system->filesystems[system->filesystem_count++] = found;
    }
    return &system->filesystems[at];
}

/* True for a regular file, open for writing, of a device that was not yet seen. The link's own mode
 * says for what it is open (tid_fd_update_inode, fs/proc/fd.c). */
static bool is_new_file(int fds_fd, const char *name, const dev_t *seen, size_t seen_count) {
    struct stat link;
    struct statx file;
    if (fstatat(fds_fd, name, &link, AT_SYMLINK_NOFOLLOW) != 0 || (link.st_mode & S_IWUSR) == 0 ||
        statx(fds_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &file) != 0 ||
        !S_ISREG(file.stx_mode)) {
        return false;
    }
    size_t at = 0;
    while (at < seen_count && seen[at] != makedev(file.stx_dev_major, file.stx_dev_minor)) {
        at++;
    }
    return at == seen_count;
}

/* The file systems of files that are open for writing: by O_PATH, which opens nothing. */
static void read_file_filesystems(int process_fd, struct filesystems *all) {
    enum { file_max = 4096 };
    dev_t seen[BP_SYSTEM_FILESYSTEM_MAX];
    bp_proc_list list = {.count = 0};
    size_t seen_count = 0;
    int fds_fd = openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_listed = fds_fd >= 0 && bp_proc_list_read(fds_fd, NULL, &list) == 0;
    size_t count = list.count < file_max ? list.count : file_max;
    for (size_t i = 0; is_listed && i < count && seen_count < BP_SYSTEM_FILESYSTEM_MAX; i++) {
        char name[24], path[path_bytes_max];
        struct stat file;
        (void)snprintf(name, sizeof name, "%u", (unsigned)list.items[i].id);
        int fd = is_new_file(fds_fd, name, seen, seen_count)
                     ? openat(fds_fd, name, O_PATH | O_CLOEXEC)
                     : -1;
        if (fd < 0 || fstat(fd, &file) != 0) {
            bp_file_close(fd);
            continue;
        }
        seen[seen_count++] = file.st_dev;
        bp_filesystem *filesystem = take_filesystem(all, fd);
        ssize_t length = readlinkat(fds_fd, name, path, sizeof path);
        if (filesystem != NULL && filesystem->file == NULL && length > 0) {
            filesystem->file = strndup(path, (size_t)length);
        }
    }
    bp_proc_list_release(&list);
    bp_file_close(fds_fd);
}

static void find_read_only(int process_fd, const struct filesystems *all) {
    bp_buffer mounts;
    bp_buffer_init(&mounts, mounts_bytes_max);
    (void)bp_file_read_at(process_fd, "mountinfo", &mounts, NULL);
    for (size_t i = 0; i < all->system->filesystem_count; i++) {
        bp_filesystem *filesystem = &all->system->filesystems[i];
        filesystem->is_read_only |=
            filesystem->file != NULL &&
            bp_mount_is_read_only(mounts.data, mounts.size, major(all->devices[i]),
                                  minor(all->devices[i]));
    }
    bp_buffer_release(&mounts);
}

/* File systems that the process writes to come last: they may be of a network. */
void bp_filesystems_read(int process_fd, int root_fd, bp_system *system) {
    static const int flags = O_PATH | O_DIRECTORY | O_CLOEXEC;
    struct filesystems all = {.system = system};
    for (size_t place = 0; root_fd >= 0 && place < BP_SYSTEM_PLACE_COUNT; place++) {
        int fd;
        if (place == BP_SYSTEM_PLACE_TMP) {
            fd = bp_open_below(root_fd, "tmp", flags);
        } else {
            fd = openat(process_fd, place == BP_SYSTEM_PLACE_ROOT ? "root" : "cwd", flags);
        }
        bp_filesystem *filesystem = take_filesystem(&all, fd);
        if (filesystem != NULL) {
            filesystem->is_of[place] = true;
        }
    }
    read_file_filesystems(process_fd, &all);
    find_read_only(process_fd, &all);
}
