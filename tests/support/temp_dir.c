#include "support/temp_dir.h"

#include <dirent.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool temp_dir_make(temp_dir *dir) {
    const char *parent = getenv("TMPDIR");
    if (parent == NULL || parent[0] != '/') {
        parent = "/tmp";
    }
    dir->fd = -1;
    int length = snprintf(dir->path, sizeof dir->path, "%s/bugpack-test-XXXXXX", parent);
    if (length < 0 || (size_t)length >= sizeof dir->path || mkdtemp(dir->path) == NULL) {
        perror("cannot make a temporary directory");
        dir->path[0] = '\0';
        return false;
    }
    dir->fd = open(dir->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (dir->fd < 0) {
        perror(dir->path);
        (void)rmdir(dir->path);
        dir->path[0] = '\0';
        return false;
    }
    return true;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *walk) {
    (void)info;
    (void)type;
    (void)walk;
    (void)remove(path);
    return 0;
}

void temp_dir_remove(temp_dir *dir) {
    if (dir->fd >= 0) {
        (void)fchmod(dir->fd, 0700); /* a test may have made it read-only */
        (void)close(dir->fd);
        dir->fd = -1;
    }
    if (dir->path[0] != '\0') {
        (void)nftw(dir->path, remove_one, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
        dir->path[0] = '\0';
    }
}

size_t temp_dir_count(const temp_dir *dir) {
    int fd = openat(dir->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = fd >= 0 ? fdopendir(fd) : NULL;
    if (stream == NULL) {
        return SIZE_MAX;
    }
    size_t count = 0;
    for (struct dirent *entry = readdir(stream); entry != NULL; entry = readdir(stream)) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    (void)closedir(stream);
    return count;
}

bool temp_dir_has(const temp_dir *dir, const char *name) {
    struct stat info;
    return fstatat(dir->fd, name, &info, AT_SYMLINK_NOFOLLOW) == 0;
}

bool temp_dir_write(const temp_dir *dir, const char *name, const void *bytes, size_t byte_count) {
    int fd = openat(dir->fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0) {
        return false;
    }
    ssize_t count = write(fd, bytes, byte_count);
    return close(fd) == 0 && count == (ssize_t)byte_count;
}

size_t temp_dir_read(const temp_dir *dir, const char *name, void *bytes, size_t max_bytes) {
    int fd = openat(dir->fd, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return SIZE_MAX;
    }
    size_t done = 0;
    ssize_t count = 0;
    while (done < max_bytes && (count = read(fd, (char *)bytes + done, max_bytes - done)) > 0) {
        done += (size_t)count;
    }
    (void)close(fd);
    return count < 0 ? SIZE_MAX : done;
}
