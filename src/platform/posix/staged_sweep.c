#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/private_file.h"
#include "platform/staged_file.h"

/*
 * A writer makes its file and locks it a moment later, so a young file is left alone even when
 * nobody holds a lock on it.
 */
static const uint64_t stale_secs = 60;

static bool is_staged_name(const char *name) {
    static const char prefix[] = BP_PRIVATE_FILE_PREFIX;
    static const char suffix[] = BP_PRIVATE_FILE_SUFFIX;
    const size_t prefix_length = sizeof prefix - 1;
    const size_t digit_count = BP_ID_BYTES - 1;
    return strlen(name) == BP_PRIVATE_FILE_NAME_BYTES - 1 &&
           strncmp(name, prefix, prefix_length) == 0 &&
           strspn(name + prefix_length, "0123456789abcdef") == digit_count &&
           strcmp(name + prefix_length + digit_count, suffix) == 0;
}

static bool is_stale(const struct stat *info) {
    uint64_t now_secs = bp_clock_wall_ns() / BP_NS_PER_SEC;
    return S_ISREG(info->st_mode) && info->st_uid == geteuid() && info->st_mtime >= 0 &&
           (uint64_t)info->st_mtime <= now_secs &&
           now_secs - (uint64_t)info->st_mtime >= stale_secs;
}

/* Whether `name` still is the very file that was looked at before. */
static bool is_same_file(int dir_fd, const char *name, const struct stat *before) {
    struct stat now;
    return fstatat(dir_fd, name, &now, AT_SYMLINK_NOFOLLOW) == 0 && now.st_dev == before->st_dev &&
           now.st_ino == before->st_ino;
}

/*
 * The checks leave no gap: what the name is (so that no device or FIFO is opened), what was opened,
 * that nobody writes it, and that the name still means it. A name in our pattern has 128 random
 * bits, so nobody makes it anew before the removal.
 */
static bool sweep_one(int dir_fd, const char *name) {
    struct stat info;
    if (!is_staged_name(name) || fstatat(dir_fd, name, &info, AT_SYMLINK_NOFOLLOW) != 0 ||
        !is_stale(&info)) {
        return false;
    }
    int fd = openat(dir_fd, name, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool is_removed = fstat(fd, &info) == 0 && is_stale(&info) &&
                      flock(fd, LOCK_EX | LOCK_NB) == 0 && is_same_file(dir_fd, name, &info) &&
                      unlinkat(dir_fd, name, 0) == 0;
    (void)close(fd);
    return is_removed;
}

size_t bp_staged_file_sweep(int dir_fd) {
    /* A descriptor of its own: a duplicate would share, and move, the caller's position. */
    int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return 0;
    }
    DIR *stream = fdopendir(fd);
    if (stream == NULL) {
        (void)close(fd);
        return 0;
    }
    size_t removed_count = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        removed_count += sweep_one(dir_fd, entry->d_name);
    }
    (void)closedir(stream);
    return removed_count;
}
