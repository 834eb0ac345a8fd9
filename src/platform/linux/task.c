/*
 * A process that is held: its beginning and end, and what a snapshot and the facts share, which is
 * reading small files, and making sure that the process is still the one that was opened.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/linux/task_private.h"

bp_task *bp_task_new(const bp_proc_root *root, pid_t pid) {
    bp_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        return NULL;
    }
    *task = (bp_task){.pid = pid,
                      .root = *root,
                      .directory_fd = -1,
                      .pidfd = -1,
                      .threads_fd = -1,
                      .statm_fd = -1};
    atomic_init(&task->reference_count, 1);
    /* Not touched before it is filled: untouched pages cost the host nothing. */
    task->entries = malloc(BP_TASK_ENTRIES_BYTES);
    if (task->entries == NULL) {
        free(task);
        return NULL;
    }
    return task;
}

void bp_task_close(bp_task *task) {
    if (task == NULL ||
        atomic_fetch_sub_explicit(&task->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    const int fds[] = {task->directory_fd, task->pidfd, task->threads_fd, task->statm_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0) {
            (void)close(fds[i]);
        }
    }
    bp_task_tree_free(task->tree);
    free(task->entries);
    free(task);
}

bp_task *bp_task_retain(bp_task *task) {
    atomic_fetch_add_explicit(&task->reference_count, 1, memory_order_relaxed);
    return task;
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", task->name);
}

pid_t bp_task_pid(const bp_task *task) {
    return task->pid;
}

ssize_t bp_proc_read_small(int dir_fd, const char *path, char *out, size_t out_bytes) {
    int fd = openat(dir_fd, path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return -1;
    }
    size_t done = 0;
    ssize_t count;
    do {
        count = read(fd, out + done, out_bytes - done);
        done += count > 0 ? (size_t)count : 0;
    } while ((count > 0 && done < out_bytes) || (count < 0 && errno == EINTR));
    int read_errno = errno;
    (void)close(fd);
    errno = read_errno;
    return count < 0 ? -1 : (ssize_t)done;
}

bugpack_status bp_task_fail_ended(const bp_task *task, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d has ended", (int)task->pid);
}

bool bp_proc_is_zombie(const bp_proc_stat *stat) {
    return (stat->state == 'Z' || stat->state == 'X') && stat->thread_count <= 1;
}

bugpack_status bp_task_read_first_stat(const bp_task *task, bp_proc_stat *ret_stat,
                                       bugpack_error *error) {
    char text[2048];
    ssize_t length = bp_proc_read_small(task->directory_fd, "stat", text, sizeof text);
    if (length < 0 && (errno == ENOENT || errno == ESRCH)) {
        return bp_task_fail_ended(task, error);
    }
    if (length < 0) {
        return bp_fail_process_errno(error, errno, "cannot read stat of process %d",
                                     (int)task->pid);
    }
    if (!bp_proc_parse_stat(text, (size_t)length, ret_stat)) {
        return bp_fail(error, BUGPACK_ERR_IO, "cannot make sense of stat of process %d",
                       (int)task->pid);
    }
    return BUGPACK_OK;
}

bugpack_status bp_task_read_stat(const bp_task *task, bp_proc_stat *ret_stat,
                                 bugpack_error *error) {
    bp_proc_stat stat;
    bugpack_status status = bp_task_read_first_stat(task, &stat, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (stat.start_ticks != task->start_ticks || (bp_proc_is_zombie(&stat) && !task->was_zombie)) {
        return bp_task_fail_ended(task, error);
    }
    *ret_stat = stat;
    return BUGPACK_OK;
}

bugpack_status bp_task_check_alive(const bp_task *task, bugpack_error *error) {
    struct pollfd poll_fd = {.fd = task->pidfd, .events = POLLIN};
    /* Readable means that it has exited (pidfd_open(2)), be it reaped or a zombie. */
    if (task->pidfd >= 0 && !task->was_zombie && poll(&poll_fd, 1, 0) > 0) {
        return bp_task_fail_ended(task, error);
    }
    if (task->pidfd >= 0 && !task->was_zombie) {
        return BUGPACK_OK;
    }
    bp_proc_stat stat;
    return bp_task_read_stat(task, &stat, error);
}

uint64_t bp_task_boottime_ns(const bp_task *task) {
    if (task->root.is_recording) {
        return task->root.boottime_ns;
    }
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * BP_NS_PER_SEC + (uint64_t)now.tv_nsec;
}

uint64_t bp_task_start_ns(const bp_task *task) {
    uint64_t per_sec = task->root.ticks_per_sec;
    uint64_t secs = task->start_ticks / per_sec;
    uint64_t rest_ns = task->start_ticks % per_sec * BP_NS_PER_SEC / per_sec;
    return secs > UINT64_MAX / BP_NS_PER_SEC - 1 ? UINT64_MAX : secs * BP_NS_PER_SEC + rest_ns;
}
