#include "platform/linux/proc_list.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"

/* The most ids that Linux gives out (PID_MAX_LIMIT in include/linux/threads.h). */
static const size_t entry_max = (size_t)4 << 20;

/* False without memory. */
static bool push_entries(bp_proc_list *list, const char *entries, size_t entries_bytes) {
    for (size_t at = 0; at < entries_bytes;) {
        /* The layout that getdents64 writes is that of this structure. */
        const struct dirent64 *entry = (const void *)(entries + at);
        bp_proc_scan name = {entry->d_name, entry->d_name + strlen(entry->d_name)};
        uint64_t id;
        at += entry->d_reclen;
        if (!bp_proc_take_number(&name, 10, &id) || name.next != name.end || id > UINT32_MAX) {
            continue;
        }
        if (list->count == entry_max ||
            !bp_array_reserve(&list->items, list->count, &list->capacity)) {
            return false;
        }
        list->items[list->count++] = (bp_proc_entry){.id = id, .inode = entry->d_ino};
    }
    return true;
}

int bp_proc_list_read(int dir_fd, const char *name, bp_proc_list *ret_list) {
    /* Large pieces: between two of them the kernel counts its way back to where it was, and an
     * entry that ended meanwhile makes it miss another (first_tid in fs/proc/base.c). */
    static const size_t entries_bytes = (size_t)256 * 1024;
    int result = 0;
    long count = 1;
    char *entries = NULL;
    *ret_list = (bp_proc_list){0};
    int fd = name == NULL ? dir_fd : openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || lseek(fd, 0, SEEK_SET) < 0) {
        result = errno;
        goto out;
    }
    entries = malloc(entries_bytes);
    result = entries == NULL ? ENOMEM : 0;
    while (result == 0 && count > 0) {
        count = syscall(SYS_getdents64, fd, entries, entries_bytes);
        if (count < 0) {
            result = errno;
        } else if (!push_entries(ret_list, entries, (size_t)count)) {
            result = ENOMEM;
        }
    }
out:
    free(entries);
    if (name != NULL) {
        bp_file_close(fd);
    }
    return result;
}

void bp_proc_list_release(bp_proc_list *list) {
    free(list->items);
    *list = (bp_proc_list){0};
}

void bp_proc_list_sort(bp_proc_list *list) {
    if (list->count > 0) {
        qsort(list->items, list->count, sizeof *list->items, bp_array_compare_u64);
    }
}

bool bp_pid_list_add(bp_pid_list *list, pid_t pid) {
    if (list->count >= entry_max || !bp_array_reserve(&list->pids, list->count, &list->capacity)) {
        return false;
    }
    list->pids[list->count++] = pid;
    return true;
}

int bp_proc_list_children(int threads_fd, uint64_t tid, bp_pid_list *children) {
    /* As many ids as Linux gives out take less. */
    static const size_t text_max_bytes = (size_t)64 << 20;
    bp_buffer text;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int fd = bp_proc_open_at(threads_fd, O_RDONLY, "%llu/children", (unsigned long long)tid);
    if (fd < 0) {
        return errno;
    }
    bp_buffer_init(&text, text_max_bytes);
    bugpack_status status = bp_file_read_fd(fd, "children", &text, &error);
    int result = status == BUGPACK_ERR_NO_MEMORY ? ENOMEM : error.system_errno;
    const char *begin = bp_buffer_text(&text);
    bp_proc_scan scan = {begin, begin + text.size};
    uint64_t pid;
    bp_proc_skip_blanks(&scan);
    while (result == 0 && bp_proc_take_number(&scan, 10, &pid)) {
        if (pid > 0 && pid <= INT32_MAX && !bp_pid_list_add(children, (pid_t)pid)) {
            result = ENOMEM;
        }
        bp_proc_skip_blanks(&scan);
    }
    bp_buffer_release(&text);
    (void)close(fd);
    return result;
}

int bp_proc_open_living_thread(int threads_fd, pid_t *ret_tid) {
    bp_proc_list threads;
    bp_proc_stat stat;
    pid_t tid = 0;
    int fd = -1;
    int result = bp_proc_list_read(threads_fd, NULL, &threads);
    for (size_t i = 0; i < threads.count; i++) {
        tid = (pid_t)threads.items[i].id;
        fd = bp_proc_open_at(threads_fd, O_PATH | O_DIRECTORY, "%d", (int)tid);
        int failure = fd < 0 ? errno : bp_proc_read_stat(fd, &stat, "stat");
        if (failure == 0 && !bp_proc_has_thread_ended(&stat)) {
            break;
        }
        bp_file_close(fd);
        fd = -1;
        result = result == 0 && !bp_proc_is_gone(failure) ? failure : result;
    }
    bp_proc_list_release(&threads);
    if (fd < 0) {
        errno = result == 0 || bp_proc_is_gone(result) ? ESRCH : result;
    } else if (ret_tid != NULL) {
        *ret_tid = tid;
    }
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
    if (thread_fd < 0 && bp_proc_is_gone(errno)) {
        return fd; /* a kernel thread, or a zombie */
    }
    bp_file_close(fd);
    return thread_fd;
}
