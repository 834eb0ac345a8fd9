/*
 * Calibrations of earlier runs. The files are this user's, but are read like any untrusted input.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/private_file.h"
#include "platform/machine.h"
#include "probe/calibration.h"

static bool is_build_id(const char *text) {
    size_t length = strlen(text);
    return length >= 8 && length <= 64 && strspn(text, "0123456789abcdef") == length;
}

static bool cache_path(char out[PATH_MAX]) {
    const char *cache = bp_machine_environment("XDG_CACHE_HOME");
    const char *home = bp_machine_environment("HOME");
    int length;
    if (cache != NULL && cache[0] == '/') {
        length = snprintf(out, PATH_MAX, "%s/bugpack", cache);
    } else if (home != NULL && home[0] == '/') {
        length = snprintf(out, PATH_MAX, "%s/.cache/bugpack", home);
    } else {
        return false;
    }
    return length > 0 && length < PATH_MAX;
}

/* -1 when there is none, or it is not private to this user. */
static int open_cache(bool create) {
    char path[PATH_MAX];
    int fd = -1;
    if (!cache_path(path) || (create && bp_file_make_path(path, NULL) != BUGPACK_OK) ||
        bp_file_open_directory(path, false, &fd, NULL) != BUGPACK_OK) {
        return -1;
    }
    if (bp_file_check_private(fd, path, NULL) != BUGPACK_OK) {
        (void)close(fd);
        return -1;
    }
    return fd;
}

static void file_name(const char *build_id, char out[96]) {
    (void)snprintf(out, 96, "jemalloc-%s", build_id);
}

bool bp_calibration_cache_load(const char *build_id, uint64_t slot,
                               bp_calibration *ret_calibration) {
    char name[96];
    char text[BP_CALIBRATION_TEXT_BYTES];
    struct stat info;
    int directory_fd = is_build_id(build_id) ? open_cache(false) : -1;
    if (directory_fd < 0) {
        return false;
    }
    file_name(build_id, name);
    int fd = openat(directory_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    (void)close(directory_fd);
    if (fd < 0) {
        return false;
    }
    ssize_t length = -1;
    if (fstat(fd, &info) == 0 && S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & 022) == 0) {
        length = read(fd, text, sizeof text);
    }
    (void)close(fd);
    return length > 0 && bp_calibration_parse(text, (size_t)length, slot, ret_calibration);
}

void bp_calibration_cache_store(const char *build_id, uint64_t slot,
                                const bp_calibration *calibration) {
    char name[96];
    char temporary[BP_PRIVATE_FILE_NAME_BYTES];
    char text[BP_CALIBRATION_TEXT_BYTES];
    int directory_fd = is_build_id(build_id) ? open_cache(true) : -1;
    if (directory_fd < 0) {
        return;
    }
    file_name(build_id, name);
    bp_calibration_format(slot, calibration, text);
    int fd = bp_private_file_open_named(directory_fd, temporary);
    if (fd >= 0) {
        /* Not synced: after a power cut it is measured again. */
        size_t length = strlen(text);
        bool is_written = write(fd, text, length) == (ssize_t)length;
        is_written = close(fd) == 0 && is_written;
        if (!is_written || renameat(directory_fd, temporary, directory_fd, name) != 0) {
            (void)unlinkat(directory_fd, temporary, 0);
        }
    }
    (void)close(directory_fd);
}
