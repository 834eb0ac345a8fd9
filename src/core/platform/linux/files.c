#include "platform/linux/files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/linux/build_id.h"

/* Reads a whole small file and closes it. */
static ssize_t read_opened(int fd, char *out, size_t out_bytes) {
    int64_t count = fd < 0 ? -1 : bp_file_read_range(fd, out, out_bytes, 0);
    bp_file_close(fd);
    return (ssize_t)count;
}

ssize_t bp_proc_read_small(int dir_fd, const char *path, char *out, size_t out_bytes) {
    return read_opened(openat(dir_fd, path, O_RDONLY | O_NOCTTY | O_CLOEXEC), out, out_bytes);
}

bp_known_uint bp_proc_read_setting(const char *path) {
    char text[32];
    int64_t value = 0;
    ssize_t length = bp_proc_read_small(AT_FDCWD, path, text, sizeof text);
    bool is_known = length > 0 && bp_proc_parse_number(text, (size_t)length, &value) && value >= 0;
    return (bp_known_uint){is_known, (uint64_t)value};
}

BUGPACK_PRINTF(3, 0)
static int open_at(int dir_fd, int flags, const char *format, va_list arguments) {
    char path[128];
    int length = vsnprintf(path, sizeof path, format, arguments);
    if (length < 0 || (size_t)length >= sizeof path) {
        errno = ENAMETOOLONG;
        return -1;
    }
    return openat(dir_fd, path, flags | O_NOCTTY | O_CLOEXEC);
}

int bp_proc_open_at(int dir_fd, int flags, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int fd = open_at(dir_fd, flags, format, arguments);
    va_end(arguments);
    return fd;
}

ssize_t bp_proc_read_at(int dir_fd, char *out, size_t out_bytes, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int fd = open_at(dir_fd, O_RDONLY, format, arguments);
    va_end(arguments);
    return read_opened(fd, out, out_bytes);
}

int bp_proc_read_stat(int dir_fd, bp_proc_stat *ret_stat, const char *format, ...) {
    char text[4096];
    va_list arguments;
    va_start(arguments, format);
    int fd = open_at(dir_fd, O_RDONLY, format, arguments);
    va_end(arguments);
    ssize_t length = read_opened(fd, text, sizeof text);
    if (length < 0) {
        return errno;
    }
    return bp_proc_parse_stat(text, (size_t)length, ret_stat) ? 0 : EBADMSG;
}

uint64_t bp_proc_read_argument_count(pid_t pid, uint64_t stack_start) {
    long count = 0;
    struct iovec ours = {&count, sizeof count};
    struct iovec theirs = {(void *)(uintptr_t)stack_start, sizeof count};
    bool is_read =
        stack_start != 0 && process_vm_readv(pid, &ours, 1, &theirs, 1, 0) == (ssize_t)sizeof count;
    return is_read && count > 0 ? (uint64_t)count : 0;
}

bool bp_read_exactly(int fd, uint64_t offset, void *out, size_t byte_count) {
    int64_t count = offset > (uint64_t)INT64_MAX - byte_count
                        ? 0
                        : bp_file_read_range(fd, out, byte_count, offset);
    bool is_whole = count == (int64_t)byte_count;
    if (count >= 0 && !is_whole) {
        errno = 0;
    }
    return is_whole;
}

int bp_reopen_regular(int path_fd) {
    struct stat info;
    char name[40];
    int fd = -1;
    bool is_known = fstat(path_fd, &info) == 0;
    if (is_known && S_ISREG(info.st_mode)) {
        (void)snprintf(name, sizeof name, "/proc/self/fd/%d", path_fd);
        fd = open(name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    } else if (is_known) {
        errno = ESTALE;
    }
    bp_file_close(path_fd);
    return fd;
}

int bp_open_regular(const char *path) {
    int path_fd = open(path, O_PATH | O_CLOEXEC);
    return path_fd < 0 ? -1 : bp_reopen_regular(path_fd);
}

struct build_id_file {
    int fd;
    int read_errno; /* of a read that failed; 0 at the end of the file */
};

static bool read_for_build_id(void *context, uint64_t offset, void *out, size_t byte_count) {
    struct build_id_file *file = context;
    bool is_read = bp_read_exactly(file->fd, offset, out, byte_count);
    file->read_errno = is_read ? file->read_errno : errno;
    return is_read;
}

int bp_read_build_id(int fd, char out[65]) {
    struct build_id_file file = {.fd = fd};
    if (bp_build_id_read(read_for_build_id, &file, out)) {
        return 0;
    }
    out[0] = '\0';
    return file.read_errno;
}

int bp_open_below(int root_fd, const char *path, int flags) {
    const struct open_how how = {.flags = (uint64_t)flags | O_CLOEXEC,
                                 .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    enum { attempt_max = 128 }; /* with EAGAIN something was renamed meanwhile (openat2(2)) */
    int fd = -1;
    for (unsigned i = 0; fd < 0 && (i == 0 || (i < attempt_max && errno == EAGAIN)); i++) {
        fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
    }
    return fd;
}

int bp_open_in_root(int process_fd, const char *path, int flags) {
    int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return -1;
    }
    int fd = bp_open_below(root_fd, path, flags);
    if (fd < 0 && errno == ENOSYS) {
        /* Before Linux 5.6 a link may lead elsewhere: the caller checks what it is. */
        fd = openat(root_fd, path + strspn(path, "/"), flags | O_CLOEXEC);
    }
    bp_file_close(root_fd);
    return fd;
}
