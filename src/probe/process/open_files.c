#include "process/open_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/libc_calls.h"

enum { target_bytes_max = 4096, text_bytes_max = 16384, limit_max = 32 };

/* Reads the descriptors of a process. */
struct reader {
    int fds_fd; /* /proc/<pid>/fd; everything else is found from there */
    bp_open_files process;
    const uint64_t *wanted; /* ascending; NULL: all */
    size_t wanted_count;
    char target[target_bytes_max], again[target_bytes_max];
    char text[text_bytes_max];
};

/* -1 with errno. */
static int read_target(const struct reader *reader, const char *name, char *target) {
    ssize_t length = readlinkat(reader->fds_fd, name, target, target_bytes_max - 1);
    target[length < 0 ? 0 : length] = '\0';
    return length < 0 ? -1 : 0;
}

/* The kernel's copy will do: to ask a server could take long. */
static void read_inode(const struct reader *reader, const char *name, bp_open_file *file,
                       uint32_t *ret_mode, bool *ret_is_removed) {
    struct statx info;
    if (statx(reader->fds_fd, name, AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_BASIC_STATS,
              &info) != 0) {
        return;
    }
    file->has_inode = true;
    file->inode = info.stx_ino;
    file->device = (uint64_t)info.stx_dev_major << 32 | info.stx_dev_minor;
    file->has_size = S_ISREG(info.stx_mode);
    file->size_bytes = info.stx_size;
    *ret_mode = info.stx_mode;
    *ret_is_removed = info.stx_nlink == 0;
}

/* 0, or an errno: ENOENT when it was closed, EAGAIN when it is another one now. */
static int read_once(struct reader *reader, uint32_t number, bp_open_file *ret_file) {
    char name[40];
    bp_open_file file = {.number = number};
    uint32_t mode = 0;
    bool is_removed = false;
    (void)snprintf(name, sizeof name, "%" PRIu32, number);
    if (read_target(reader, name, reader->target) != 0) {
        return errno;
    }
    read_inode(reader, name, &file, &mode, &is_removed);
    (void)snprintf(name, sizeof name, "../fdinfo/%" PRIu32, number);
    ssize_t length = bp_proc_read_small(reader->fds_fd, name, reader->text, text_bytes_max);
    if (length > 0) {
        bp_fd_info_parse(reader->text, (size_t)length, &file.info);
        /* To find who else has an eventfd, all processes are looked at: only for one that a thread
         * waits on. */
        file.info.has_event = file.info.has_event && reader->wanted != NULL;
    }
    if (read_target(reader, name + strlen("../fdinfo/"), reader->again) != 0) {
        return errno;
    }
    if (strcmp(reader->target, reader->again) != 0) {
        return EAGAIN;
    }
    file.kind = bp_open_file_kind_of(reader->target, mode);
    size_t kept = bp_proc_deleted_path_length(reader->target, strlen(reader->target));
    bool is_marked = is_removed && kept > 0;
    file.is_deleted = is_marked && file.kind != BP_OPEN_FILE_MEMFD; /* which never had a name */
    file.target = is_marked ? strndup(reader->target, kept) : strdup(reader->target);
    if (file.target == NULL) {
        return ENOMEM;
    }
    *ret_file = file;
    return 0;
}

/* A watch is a line of fdinfo that begins with "inotify", the only ones with such a fourth byte. */
static uint64_t count_watches(const struct reader *reader, uint32_t number) {
    char text[target_bytes_max];
    uint64_t count = 0, column = 0;
    ssize_t length = 0;
    int fd = bp_proc_open_at(reader->fds_fd, O_RDONLY, "../fdinfo/%" PRIu32, number);
    while (fd >= 0 && (length = read(fd, text, sizeof text)) > 0) {
        for (ssize_t i = 0; i < length; i++) {
            count += column == 3 && text[i] == 't';
            column = text[i] == '\n' ? 0 : column + 1;
        }
    }
    bp_file_close(fd);
    return count;
}

/* A descriptor may be closed and opened again at any time: three attempts, then it is counted as
 * closed. ENOMEM or 0. */
static int read_file(struct reader *reader, uint32_t number) {
    bp_open_files *process = &reader->process;
    int result = EAGAIN;
    for (int attempt = 0; result == EAGAIN && attempt < 3; attempt++) {
        result = read_once(reader, number, &process->files[process->file_count]);
    }
    if (result == 0) {
        bool is_inotify = process->files[process->file_count++].kind == BP_OPEN_FILE_INOTIFY;
        process->inotify_count += is_inotify;
        process->watch_count += is_inotify ? count_watches(reader, number) : 0;
    } else if (result == ENOENT || result == ESRCH || result == EAGAIN) {
        process->vanished_count++;
    } else if (result != ENOMEM) {
        process->unread_count++;
        process->unread_errno = result;
    }
    return result == ENOMEM ? ENOMEM : 0;
}

static void read_limit(struct reader *reader) {
    bp_resource_limit limits[limit_max];
    ssize_t length = bp_proc_read_small(reader->fds_fd, "../limits", reader->text, text_bytes_max);
    size_t count =
        length > 0 ? bp_proc_parse_limits(reader->text, (size_t)length, limits, limit_max) : 0;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(limits[i].name, "Max open files") == 0) {
            reader->process.has_limit = true;
            reader->process.limit = limits[i];
        }
    }
}

static bool is_wanted(const struct reader *reader, uint64_t number) {
    return reader->wanted == NULL ||
           bp_array_find_u64(number, reader->wanted, reader->wanted_count, sizeof number) != NULL;
}

/* The descriptor of this reading is not one of our own process's list. */
static int read_files(struct reader *reader, bool is_own, size_t file_max, uint64_t deadline_ns) {
    bp_open_files *process = &reader->process;
    bp_proc_list list;
    int result = bp_proc_list_read(reader->fds_fd, NULL, &list);
    if (result == 0) {
        process->open_count = list.count;
        size_t count = 0;
        for (size_t i = 0; i < list.count; i++) {
            bool is_reading = is_own && list.items[i].id == (uint64_t)reader->fds_fd;
            process->open_count -= is_reading;
            if (!is_reading && is_wanted(reader, list.items[i].id)) {
                list.items[count++] = list.items[i];
            }
        }
        list.count = count;
        bp_proc_list_sort(&list);
        size_t wanted = count < file_max ? count : file_max;
        process->files = calloc(wanted + 1, sizeof *process->files);
        result = process->files == NULL ? ENOMEM : 0;
        size_t at = 0;
        while (result == 0 && at < wanted && bp_clock_monotonic_ns() <= deadline_ns) {
            result = read_file(reader, (uint32_t)list.items[at++].id);
        }
        process->passed_over_count = list.count - at;
    }
    bp_proc_list_release(&list);
    return result;
}

bugpack_status bp_open_files_read(pid_t pid, const uint64_t *wanted, size_t file_max,
                                  uint64_t deadline_ns, bp_open_files *ret_process,
                                  bugpack_error *error) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return bp_fail_memory(error, "read the open files of a process");
    }
    reader->wanted = wanted;
    reader->wanted_count = file_max;
    reader->process.pid = (uint64_t)(pid == 0 ? getpid() : pid);
    int process_fd = bp_proc_open_process(pid);
    reader->fds_fd =
        process_fd < 0 ? -1 : openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int result = reader->fds_fd < 0 ? errno : 0;
    bp_file_close(process_fd);
    if (result == 0) {
        bp_proc_stat stat;
        if (bp_proc_read_stat(reader->fds_fd, &stat, "../stat") == 0) {
            reader->process.birth = stat.start_ticks;
            memcpy(reader->process.name, stat.name, sizeof reader->process.name);
        }
        read_limit(reader);
        result = read_files(reader, pid == 0, file_max, deadline_ns);
    }
    if (result == 0 && !bp_open_sockets_read(reader->fds_fd, deadline_ns, &reader->process)) {
        result = ENOMEM;
    }
    if (reader->process.inotify_count > 0) {
        reader->process.inotify_max =
            bp_proc_read_setting("/proc/sys/fs/inotify/max_user_instances");
        reader->process.watch_max = bp_proc_read_setting("/proc/sys/fs/inotify/max_user_watches");
    }
    bugpack_status status = BUGPACK_OK;
    if (result == 0) {
        *ret_process = reader->process;
        reader->process = (bp_open_files){.pid = 0};
    } else if (result == ENOMEM) {
        status = bp_fail_memory(error, "read the open files of a process");
    } else {
        status = bp_fail_process_errno(
            error, result, "cannot list the open files of process %" PRIu64, reader->process.pid);
    }
    bp_open_files_release(&reader->process);
    bp_file_close(reader->fds_fd);
    free(reader);
    return status;
}
