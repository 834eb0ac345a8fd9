/*
 * Taking hold of a process, and saying why that cannot be.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/linux/task_private.h"

/*
 * Says which of the ways of not being there it is. With hidepid=2 another user's process is
 * invisible under /proc, not gone: its directory opens, and everything in it is ENOENT
 * (proc_pid_permission in fs/proc/base.c).
 */
static bugpack_status fail_not_there(const bp_task *task, bugpack_error *error) {
    if (task->root.has_our_ids && (kill(task->pid, 0) == 0 || errno == EPERM)) {
        return bp_fail(error, BUGPACK_ERR_DENIED,
                       "process %d exists, but /proc hides it from this user", (int)task->pid);
    }
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)task->pid);
}

static bugpack_status open_directory(bp_task *task, const char *name, bugpack_error *error) {
    task->directory_fd = openat(task->root.fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (task->directory_fd >= 0) {
        return BUGPACK_OK;
    }
    if (errno == ENOENT || errno == ESRCH) {
        return fail_not_there(task, error);
    }
    return bp_fail_process_errno(error, errno, "cannot look at process %d", (int)task->pid);
}

/* /proc/<tid> opens for every thread, although it is not listed there (proc(5)). */
static bugpack_status refuse_thread(const bp_task *task, bugpack_error *error) {
    char text[4096];
    uint64_t pid, group;
    ssize_t length = bp_proc_read_small(task->directory_fd, "status", text, sizeof text);
    if (length < 0 && errno != ENOENT && errno != ESRCH) {
        return bp_fail_process_errno(error, errno, "cannot read status of process %d",
                                     (int)task->pid);
    }
    if (length < 0) {
        return bp_task_fail_ended(task, error);
    }
    if (bp_proc_find_number(text, (size_t)length, "Pid", 0, &pid) &&
        bp_proc_find_number(text, (size_t)length, "Tgid", 0, &group) && pid != group) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS,
                       "%d is not a process but a thread of process %llu", (int)task->pid,
                       (unsigned long long)group);
    }
    return BUGPACK_OK;
}

/* Opens what is held open, and learns which process this is. */
static bugpack_status open_files(bp_task *task, bugpack_error *error) {
    bp_proc_stat stat;
    bugpack_status status = bp_task_read_first_stat(task, &stat, error);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        return fail_not_there(task, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    task->start_ticks = stat.start_ticks;
    (void)snprintf(task->name, sizeof task->name, "%s", stat.name);
    task->was_zombie = bp_proc_is_zombie(&stat);
    status = refuse_thread(task, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    task->threads_fd = openat(task->directory_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (task->threads_fd >= 0) {
        task->statm_fd = openat(task->directory_fd, "statm", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    }
    if (task->statm_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot read the counters of process %d",
                                     (int)task->pid);
    }
    return BUGPACK_OK;
}

/*
 * The order matters. The directory pins one process, not a number: once that process is gone, every
 * read through it fails, even when another has its id (get_proc_task in fs/proc/internal.h). The
 * pidfd is made from the number, so it could be of a successor, but only if the first process was
 * gone by then, and in that case reading stat afterwards fails. So when stat could be read, both
 * descriptors mean the process whose start time it gave.
 */
bugpack_status bp_task_open_at(const bp_proc_root *root, pid_t pid, bp_task **ret_task,
                               bugpack_error *error) {
    if (pid <= 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)pid);
    }
    bp_task *task = bp_task_new(root, pid);
    if (task == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    char name[24];
    (void)snprintf(name, sizeof name, "%d", (int)pid);
    bugpack_status status = open_directory(task, name, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
#ifdef SYS_pidfd_open
    /* Where it fails (before Linux 5.3, or a seccomp filter) the directory and the start time have
     * to do, and they do; the descriptor is close-on-exec by itself. */
    if (root->has_our_ids) {
        task->pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    }
#endif
    status = open_files(task, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    *ret_task = task;
    task = NULL;
out:
    bp_task_close(task);
    return status;
}

/* Our own process, through the link that is right also where /proc numbers processes otherwise. */
static bugpack_status open_own(const bp_proc_root *root, bp_task **ret_task, bugpack_error *error) {
    bp_task *task = bp_task_new(root, getpid());
    if (task == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    bugpack_status status = open_directory(task, "self", error);
    if (status == BUGPACK_OK) {
        status = open_files(task, error);
    }
    if (status != BUGPACK_OK) {
        bp_task_close(task);
        return status;
    }
    task->is_own = root->has_our_ids;
    *ret_task = task;
    return BUGPACK_OK;
}

/* Whether /proc numbers processes as our own pid namespace does. */
static bool has_our_ids(int proc_fd) {
    char target[24];
    char own[24];
    ssize_t length = readlinkat(proc_fd, "self", target, sizeof target);
    int own_length = snprintf(own, sizeof own, "%d", (int)getpid());
    return length == own_length && memcmp(target, own, (size_t)length) == 0;
}

/* Opens /proc, and makes sure that it is one: in a chroot it may be an empty directory. */
static bugpack_status open_proc(int *ret_fd, bugpack_error *error) {
    struct statfs info;
    int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0 && fstatfs(fd, &info) == 0 && info.f_type == PROC_SUPER_MAGIC) {
        *ret_fd = fd;
        return BUGPACK_OK;
    }
    int open_errno = errno;
    if (fd < 0 && (open_errno == EMFILE || open_errno == ENFILE || open_errno == ENOMEM)) {
        return bp_fail_errno(error, open_errno, "cannot open /proc");
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the proc file system is not mounted at /proc");
}

/* Makes an open task one with descendants. */
static bugpack_status add_tree(const bp_proc_root *root, bp_task **task, bugpack_error *error) {
    bugpack_status status = bp_task_tree_new(root, &(*task)->tree, error);
    /* One way of counting for all: the files', in clock ticks. */
    (*task)->is_own = false;
    if (status != BUGPACK_OK) {
        bp_task_close(*task);
        *task = NULL;
    }
    return status;
}

static bugpack_status open_process(pid_t pid, bool with_descendants, bp_task **ret_task,
                                   bugpack_error *error) {
    if (pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)pid);
    }
    long ticks = sysconf(_SC_CLK_TCK);
    long page_bytes = sysconf(_SC_PAGESIZE);
    bp_proc_root root = {.ticks_per_sec = ticks > 0 ? (uint64_t)ticks : 100,
                         .page_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 4096};
    bugpack_status status = open_proc(&root.fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    root.has_our_ids = has_our_ids(root.fd);
    bp_task *task = NULL;
    if (pid == 0 || pid == getpid()) {
        status = open_own(&root, &task, error);
    } else if (!root.has_our_ids) {
        /* Whoever got the id from a system call would be shown a stranger. */
        status = bp_fail(error, BUGPACK_ERR_DENIED,
                         "cannot look at process %d: /proc is of another pid namespace than ours",
                         (int)pid);
    } else {
        status = bp_task_open_at(&root, pid, &task, error);
    }
    if (status == BUGPACK_OK && with_descendants) {
        status = add_tree(&root, &task, error);
    }
    (void)close(root.fd);
    if (status == BUGPACK_OK) {
        *ret_task = task;
    }
    return status;
}

bugpack_status bp_task_open(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return open_process(pid, false, ret_task, error);
}

bugpack_status bp_task_open_tree(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return open_process(pid, true, ret_task, error);
}

bugpack_status bp_task_open_tree_at(const bp_proc_root *root, pid_t pid, bp_task **ret_task,
                                    bugpack_error *error) {
    bp_task *task = NULL;
    bugpack_status status = bp_task_open_at(root, pid, &task, error);
    if (status == BUGPACK_OK) {
        status = add_tree(root, &task, error);
    }
    if (status == BUGPACK_OK) {
        *ret_task = task;
    }
    return status;
}
