/*
 * The ids of a process's threads.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/linux/proc_scan.h"
#include "platform/linux/task_private.h"

/* More threads than any Linux can have by default; the bound is for a recording gone wrong. */
static const size_t thread_max = (size_t)1 << 20;

/* A growing array of counters. */
typedef struct thread_list {
    bp_thread_counters *counters;
    size_t count, capacity;
} thread_list;

static bool push_thread(thread_list *list, uint64_t tid) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 64 : list->capacity * 2;
        if (capacity > thread_max) {
            return false;
        }
        bp_thread_counters *counters = realloc(list->counters, capacity * sizeof *counters);
        if (counters == NULL) {
            return false;
        }
        list->counters = counters;
        list->capacity = capacity;
    }
    list->counters[list->count++] = (bp_thread_counters){.tid = tid};
    return true;
}

/* Takes the threads out of one piece of a directory; false when memory is short. */
static bool push_entries(thread_list *list, const char *entries, size_t entries_bytes) {
    size_t at = 0;
    while (at < entries_bytes) {
        const struct dirent64 *entry = (const void *)(entries + at);
        bp_proc_scan name = {entry->d_name, entry->d_name + strlen(entry->d_name)};
        uint64_t tid;
        bool is_thread = bp_proc_take_number(&name, 10, &tid) && name.next == name.end;
        if (is_thread && !push_thread(list, tid)) {
            return false;
        }
        at += entry->d_reclen;
    }
    return true;
}

bugpack_status bp_task_list_threads(bp_task *task, bp_thread_counters **ret_counters,
                                    size_t *ret_count, bugpack_error *error) {
    thread_list list = {0};
    bugpack_status status = BUGPACK_OK;
    /* Large pieces: between two of them the kernel counts its way to where it was, and a thread
     * that ended meanwhile makes it miss another (first_tid in fs/proc/base.c). */
    ssize_t count = lseek(task->threads_fd, 0, SEEK_SET);
    while (count >= 0) {
        count = syscall(SYS_getdents64, task->threads_fd, task->entries, BP_TASK_ENTRIES_BYTES);
        if (count <= 0) {
            break;
        }
        if (!push_entries(&list, task->entries, (size_t)count)) {
            status = bp_fail_memory(error, "list the threads of a process");
            goto out;
        }
    }
    if (count < 0) {
        status = errno == ENOENT || errno == ESRCH
                     ? bp_task_fail_ended(task, error)
                     : bp_fail_process_errno(error, errno, "cannot list the threads of process %d",
                                             (int)task->pid);
        goto out;
    }
    *ret_counters = list.counters;
    *ret_count = list.count;
    list.counters = NULL;
out:
    free(list.counters);
    return status;
}

int bp_task_open_living_thread(bp_task *task) {
    bp_thread_counters *threads = NULL;
    size_t count = 0;
    if (bp_task_list_threads(task, &threads, &count, NULL) != BUGPACK_OK) {
        return -1;
    }
    int fd = -1;
    for (size_t i = 0; i < count && fd < 0; i++) {
        char name[24];
        char text[2048];
        bp_proc_stat stat;
        (void)snprintf(name, sizeof name, "%llu", (unsigned long long)threads[i].tid);
        fd = openat(task->threads_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
        ssize_t length = fd < 0 ? -1 : bp_proc_read_small(fd, "stat", text, sizeof text);
        bool is_living = length > 0 && bp_proc_parse_stat(text, (size_t)length, &stat) &&
                         stat.state != 'Z' && stat.state != 'X';
        if (fd >= 0 && !is_living) {
            (void)close(fd);
            fd = -1;
        }
    }
    free(threads);
    return fd;
}
