/*
 * Opening a file that another process has mapped, without being harmed by what is there now.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "platform/linux/build_id.h"
#include "platform/linux/facts_private.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

/*
 * Opens a path as the target sees it: below its root, and with links that cannot lead out of it. An
 * O_PATH descriptor opens nothing, so that a device or a FIFO in that place notices nothing.
 */
static int open_in_root(int root_fd, const char *path) {
    const int flags = O_PATH | O_NOFOLLOW | O_CLOEXEC;
    if (root_fd < 0) {
        return open(path, flags);
    }
#ifdef SYS_openat2
    struct open_how how = {.flags = (uint64_t)flags,
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    if (fd >= 0 || errno != ENOSYS) {
        return fd;
    }
#endif
    /* Before Linux 5.6 a link may lead elsewhere, and the inode then tells. */
    while (*path == '/') {
        path++;
    }
    return openat(root_fd, path, flags);
}

/*
 * Whether a descriptor is of the file that is mapped. maps shows the device of the inode, while
 * stat on btrfs and overlayfs shows that of the subvolume or the overlay: there the inode number
 * has to do.
 */
static bool is_mapped_file(int fd, const bp_mapped_file *file) {
    static const unsigned long overlay_magic = 0x794c7630;
    struct stat info;
    struct statfs system;
    if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode) || info.st_ino != file->inode) {
        return false;
    }
    if (major(info.st_dev) == file->device_major && minor(info.st_dev) == file->device_minor) {
        return true;
    }
    return fstatfs(fd, &system) == 0 &&
           ((unsigned long)system.f_type == (unsigned long)BTRFS_SUPER_MAGIC ||
            (unsigned long)system.f_type == overlay_magic);
}

static bool read_exactly(void *context, uint64_t offset, void *out, size_t byte_count) {
    const int *fd = context;
    if (offset > INT64_MAX - byte_count) {
        return false;
    }
    size_t done = 0;
    while (done < byte_count) {
        ssize_t count = pread(*fd, (char *)out + done, byte_count - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            return false;
        }
        done += (size_t)count;
    }
    return true;
}

/* Reads the build id through an O_PATH descriptor that is known to be of a regular file. */
static bool read_through(int path_fd, char out[65]) {
    char name[40];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
    int fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool found = bp_build_id_read(read_exactly, &fd, out);
    (void)close(fd);
    return found;
}

void bp_facts_read_build_id(const bp_task *task, int root_fd, const bp_mapped_file *file,
                            char out[65], bool *ret_is_there) {
    out[0] = '\0';
    int fd = open_in_root(root_fd, file->path);
    bool is_there = fd >= 0 && is_mapped_file(fd, file);
    if (!is_there) {
        /* Gone or replaced; the kernel still has it, for those who may checkpoint a process. */
        if (fd >= 0) {
            (void)close(fd);
        }
        char name[64];
        (void)snprintf(name, sizeof name, "map_files/%llx-%llx", (unsigned long long)file->start,
                       (unsigned long long)file->end);
        fd = openat(task->directory_fd, name, O_PATH | O_CLOEXEC);
        if (fd >= 0 && !is_mapped_file(fd, file)) {
            (void)close(fd);
            fd = -1;
        }
    }
    if (fd >= 0) {
        (void)read_through(fd, out);
        (void)close(fd);
    }
    *ret_is_there = is_there;
}
