#include "platform/linux/files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/file.h"
#include "platform/linux/build_id.h"
#include "platform/linux/proc_scan.h"

#ifdef SYS_openat2
#include <linux/openat2.h>
#endif

/* The most ids that Linux gives out (PID_MAX_LIMIT in include/linux/threads.h). */
static const size_t number_max = (size_t)4 << 20;

/* Reads a whole small file and closes it. */
static ssize_t read_opened(int fd, char *out, size_t out_bytes) {
    if (fd < 0) {
        return -1;
    }
    size_t done = 0;
    ssize_t count;
    do {
        count = read(fd, out + done, out_bytes - done);
        done += count > 0 ? (size_t)count : 0;
    } while ((count > 0 && done < out_bytes) || (count < 0 && errno == EINTR));
    bp_file_close(fd);
    return count < 0 ? -1 : (ssize_t)done;
}

ssize_t bp_proc_read_small(int dir_fd, const char *path, char *out, size_t out_bytes) {
    return read_opened(openat(dir_fd, path, O_RDONLY | O_NOCTTY | O_CLOEXEC), out, out_bytes);
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

int bp_proc_compare_numbers(const void *one, const void *other) {
    uint32_t left = *(const uint32_t *)one;
    uint32_t right = *(const uint32_t *)other;
    return (left > right) - (left < right);
}

typedef struct number_list {
    bool has_inodes;
    uint32_t *numbers;
    uint64_t *inodes;
    size_t count, capacity;
} number_list;

static bool grow(number_list *list) {
    size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
    uint32_t *numbers =
        capacity > number_max ? NULL : realloc(list->numbers, capacity * sizeof *numbers);
    if (numbers == NULL) {
        return false;
    }
    list->numbers = numbers;
    if (list->has_inodes) {
        uint64_t *inodes = realloc(list->inodes, capacity * sizeof *inodes);
        if (inodes == NULL) {
            return false;
        }
        list->inodes = inodes;
    }
    list->capacity = capacity;
    return true;
}

static bool push_number(number_list *list, uint32_t number, uint64_t inode) {
    if (list->count == list->capacity && !grow(list)) {
        return false;
    }
    if (list->has_inodes) {
        list->inodes[list->count] = inode;
    }
    list->numbers[list->count++] = number;
    return true;
}

static bool push_entries(number_list *list, const char *entries, size_t entries_bytes) {
    for (size_t at = 0; at < entries_bytes;) {
        /* The layout that getdents64 writes is that of this structure. */
        const struct dirent64 *entry = (const void *)(entries + at);
        bp_proc_scan name = {entry->d_name, entry->d_name + strlen(entry->d_name)};
        uint64_t number;
        if (bp_proc_take_number(&name, 10, &number) && name.next == name.end &&
            number <= UINT32_MAX && !push_number(list, (uint32_t)number, entry->d_ino)) {
            return false;
        }
        at += entry->d_reclen;
    }
    return true;
}

static int list_all(int directory_fd, number_list *list) {
    /* Large pieces: between two of them the kernel counts its way back to where it was, and an
     * entry that ended meanwhile makes it miss another (first_tid in fs/proc/base.c). */
    static const size_t entries_bytes = (size_t)256 * 1024;
    char *entries = malloc(entries_bytes);
    int result = entries == NULL ? ENOMEM : lseek(directory_fd, 0, SEEK_SET) < 0 ? errno : 0;
    ssize_t count = 1;
    while (result == 0 && count > 0) {
        count = syscall(SYS_getdents64, directory_fd, entries, entries_bytes);
        if (count < 0) {
            result = errno;
        } else if (!push_entries(list, entries, (size_t)count)) {
            result = ENOMEM;
        }
    }
    free(entries);
    return result;
}

int bp_proc_list_numbers(int directory_fd, uint32_t **ret_numbers, size_t *ret_count) {
    number_list list = {0};
    int result = list_all(directory_fd, &list);
    *ret_numbers = list.numbers;
    *ret_count = list.count;
    return result;
}

int bp_proc_open_living_thread(int threads_fd, pid_t *ret_tid) {
    uint32_t *tids = NULL;
    size_t count = 0;
    int fd = -1;
    (void)bp_proc_list_numbers(threads_fd, &tids, &count);
    for (size_t i = 0; i < count && fd < 0; i++) {
        bp_proc_stat stat;
        fd = bp_proc_open_at(threads_fd, O_PATH | O_DIRECTORY, "%u", (unsigned)tids[i]);
        if (fd >= 0 &&
            (bp_proc_read_stat(fd, &stat, "stat") != 0 || bp_proc_has_thread_ended(&stat))) {
            (void)close(fd);
            fd = -1;
        }
        if (fd >= 0 && ret_tid != NULL) {
            *ret_tid = (pid_t)tids[i];
        }
    }
    free(tids);
    return fd;
}

int bp_proc_open_process(pid_t pid) {
    char target[2];
    int fd = pid == 0 ? open("/proc/self", O_PATH | O_DIRECTORY | O_CLOEXEC)
                      : bp_proc_open_at(AT_FDCWD, O_PATH | O_DIRECTORY, "/proc/%d", (int)pid);
    if (fd < 0 || readlinkat(fd, "exe", target, sizeof target) >= 0 || errno != ENOENT) {
        return fd;
    }
    int threads_fd = openat(fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int thread_fd = threads_fd >= 0 ? bp_proc_open_living_thread(threads_fd, NULL) : -1;
    bp_file_close(threads_fd);
    if (thread_fd < 0) {
        return fd;
    }
    bp_file_close(fd);
    return thread_fd;
}

uint64_t bp_proc_read_argument_count(pid_t pid, uint64_t stack_start) {
    long count = 0;
    struct iovec ours = {&count, sizeof count};
    struct iovec theirs = {(void *)(uintptr_t)stack_start, sizeof count};
    bool is_read =
        stack_start != 0 && process_vm_readv(pid, &ours, 1, &theirs, 1, 0) == (ssize_t)sizeof count;
    return is_read && count > 0 ? (uint64_t)count : 0;
}

int bp_proc_list_inodes(int directory_fd, uint32_t **ret_numbers, uint64_t **ret_inodes,
                        size_t *ret_count) {
    number_list list = {.has_inodes = true};
    int result = list_all(directory_fd, &list);
    *ret_numbers = list.numbers;
    *ret_inodes = list.inodes;
    *ret_count = list.count;
    return result;
}

bool bp_read_exactly(int fd, uint64_t offset, void *out, size_t byte_count) {
    size_t done = 0;
    if (offset > (uint64_t)INT64_MAX - byte_count) {
        errno = 0;
        return false;
    }
    while (done < byte_count) {
        ssize_t count = pread(fd, (char *)out + done, byte_count - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count <= 0) {
            errno = count == 0 ? 0 : errno;
            return false;
        }
        done += (size_t)count;
    }
    return true;
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

int bp_open_in_root(int process_fd, const char *path, int flags) {
    int root_fd = openat(process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (root_fd < 0) {
        return -1;
    }
    int fd = -1;
    errno = ENOSYS;
#ifdef SYS_openat2
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS};
    fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof how);
#endif
    if (fd < 0 && errno == ENOSYS) {
        /* Before Linux 5.6 a link may lead elsewhere: the caller checks what it is. */
        fd = openat(root_fd, path + strspn(path, "/"), flags | O_CLOEXEC);
    }
    bp_file_close(root_fd);
    return fd;
}
