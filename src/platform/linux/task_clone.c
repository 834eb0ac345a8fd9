/*
 * Taking hold of the same process a second time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "platform/linux/task_private.h"

/* A duplicate that is close-on-exec; -1 of -1. */
static int duplicate(int fd) {
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

/*
 * Descriptors that are read by position, or not read at all, are duplicated. The list of threads
 * has an offset, which duplicates share (dup(2)), so it is opened anew, through the directory that
 * pins the process: when that has ended, the open fails, whoever has its id by then.
 */
static bugpack_status clone_files(const bp_task *task, bp_task *clone, bugpack_error *error) {
    clone->directory_fd = duplicate(task->directory_fd);
    clone->pidfd = duplicate(task->pidfd);
    clone->statm_fd = duplicate(task->statm_fd);
    if (clone->directory_fd < 0 || clone->statm_fd < 0 || (clone->pidfd < 0 && task->pidfd >= 0)) {
        return bp_fail_errno(error, errno, "cannot hold process %d twice", (int)task->pid);
    }
    clone->threads_fd = openat(clone->directory_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (clone->threads_fd >= 0) {
        return BUGPACK_OK;
    }
    if (errno == ENOENT || errno == ESRCH) {
        return bp_task_fail_ended(task, error);
    }
    return bp_fail_process_errno(error, errno, "cannot hold process %d twice", (int)task->pid);
}

bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error) {
    bp_task *clone = bp_task_new(&task->root, task->pid);
    if (clone == NULL) {
        return bp_fail_memory(error, "hold a process twice");
    }
    memcpy(clone->name, task->name, sizeof clone->name);
    clone->is_own = task->is_own;
    clone->was_zombie = task->was_zombie;
    clone->start_ticks = task->start_ticks;
    bugpack_status status = clone_files(task, clone, error);
    if (status == BUGPACK_OK && task->tree != NULL) {
        status = bp_task_tree_clone(task->tree, &clone->tree, error);
    }
    if (status != BUGPACK_OK) {
        bp_task_close(clone);
        return status;
    }
    *ret_clone = clone;
    return BUGPACK_OK;
}
