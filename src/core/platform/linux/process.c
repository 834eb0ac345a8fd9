#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/process_private.h"

/* Sees if /proc numbers processes as our own pid namespace does: in another's we have no id, and
 * the link is not there. */
static int find_ids(int proc_fd, bool *ret_has_our_ids) {
    char target[24];
    char own[24];
    ssize_t length = readlinkat(proc_fd, "self", target, sizeof target);
    if (length < 0 && errno != ENOENT) {
        return errno;
    }
    int own_length = snprintf(own, sizeof own, "%d", (int)getpid());
    *ret_has_our_ids = length == own_length && memcmp(target, own, (size_t)length) == 0;
    return 0;
}

/* Opens /proc; the caller closes the descriptor. */
static bugpack_status open_root(bp_proc_root *ret_root, bugpack_error *error) {
    struct statfs info = {.f_type = 0};
    bool has_our_ids = false;
    long ticks = sysconf(_SC_CLK_TCK);
    long page_bytes = sysconf(_SC_PAGESIZE);
    int fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int result = fd < 0 || fstatfs(fd, &info) != 0 ? errno : 0;
    /* In a chroot it may be an empty directory. */
    bool is_proc = result == 0 && info.f_type == PROC_SUPER_MAGIC;
    if (is_proc) {
        result = find_ids(fd, &has_our_ids);
    }
    if (is_proc && result == 0) {
        *ret_root = (bp_proc_root){.fd = fd,
                                   .has_our_ids = has_our_ids,
                                   .ticks_per_sec = ticks > 0 ? (uint64_t)ticks : 100,
                                   .page_bytes = page_bytes > 0 ? (uint64_t)page_bytes : 4096};
        return BUGPACK_OK;
    }
    bp_file_close(fd);
    if (result != 0 && result != ENOENT && result != ENOTDIR) {
        return bp_fail_errno(error, result, "cannot open /proc");
    }
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "the proc file system is not mounted at /proc");
}

bugpack_status bp_process_fail_ended(const bp_task *process, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d has ended", (int)process->pid);
}

bugpack_status bp_process_fail(const bp_task *process, int system_errno, const char *what,
                               bugpack_error *error) {
    return bp_proc_is_gone(system_errno)
               ? bp_process_fail_ended(process, error)
               : bp_fail_process_errno(error, system_errno, "cannot %s process %d", what,
                                       (int)process->pid);
}

/*
 * With hidepid=2 another user's process is invisible under /proc, not gone: its directory opens,
 * and everything in it is ENOENT (proc_pid_permission in fs/proc/base.c).
 */
static bugpack_status fail_not_there(const bp_task *process, bugpack_error *error) {
    if (process->root.has_our_ids && (kill(process->pid, 0) == 0 || errno == EPERM)) {
        return bp_fail(error, BUGPACK_ERR_DENIED,
                       "process %d exists, but /proc hides it from this user", (int)process->pid);
    }
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)process->pid);
}

static bugpack_status read_any_stat(const bp_task *process, bp_proc_stat *ret_stat,
                                    bugpack_error *error) {
    int result = bp_proc_read_stat(process->directory_fd, ret_stat, "stat");
    if (result == EBADMSG) {
        return bp_fail(error, BUGPACK_ERR_IO, "cannot make sense of stat of process %d",
                       (int)process->pid);
    }
    return result == 0 ? BUGPACK_OK : bp_process_fail(process, result, "read stat of", error);
}

bugpack_status bp_process_read_stat(const bp_task *process, bp_proc_stat *ret_stat,
                                    bugpack_error *error) {
    bp_proc_stat stat;
    bugpack_status status = read_any_stat(process, &stat, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (stat.start_ticks != process->start_ticks ||
        (bp_proc_has_process_ended(&stat) && !process->was_zombie)) {
        return bp_process_fail_ended(process, error);
    }
    *ret_stat = stat;
    return BUGPACK_OK;
}

/* /proc/<tid> opens for every thread, although it is not listed there (proc(5)). */
static bugpack_status refuse_thread(const bp_task *process, bugpack_error *error) {
    char text[4096];
    uint64_t pid, group;
    ssize_t length = bp_proc_read_small(process->directory_fd, "status", text, sizeof text);
    if (length < 0) {
        return bp_process_fail(process, errno, "read status of", error);
    }
    if (bp_proc_find_number(text, (size_t)length, "Pid", 0, &pid) &&
        bp_proc_find_number(text, (size_t)length, "Tgid", 0, &group) && pid != group) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS,
                       "%d is not a process but a thread of process %llu", (int)process->pid,
                       (unsigned long long)group);
    }
    return BUGPACK_OK;
}

/* Reads which process this is, and opens what stays open. */
static bugpack_status open_files(bp_task *process, bugpack_error *error) {
    bp_proc_stat stat;
    bugpack_status status = read_any_stat(process, &stat, error);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        return fail_not_there(process, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    process->start_ticks = stat.start_ticks;
    (void)snprintf(process->name, sizeof process->name, "%s", stat.name);
    process->was_zombie = bp_proc_has_process_ended(&stat);
    status = refuse_thread(process, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    process->threads_fd = openat(process->directory_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (process->threads_fd >= 0) {
        process->statm_fd = openat(process->directory_fd, "statm", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    }
    if (process->statm_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot read the counters of process %d",
                                     (int)process->pid);
    }
    return BUGPACK_OK;
}

/* The directory pins one process: once that is gone, every read through it fails, even when another
 * has its id (get_proc_task in fs/proc/internal.h). */
static bugpack_status open_descriptors(bp_task *process, int root_fd, const char *name,
                                       bugpack_error *error) {
    process->directory_fd = openat(root_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (process->directory_fd < 0) {
        return bp_proc_is_gone(errno) ? fail_not_there(process, error)
                                      : bp_process_fail(process, errno, "look at", error);
    }
    return open_files(process, error);
}

/* A duplicate that is close-on-exec; -1 of -1. */
static int duplicate(int fd) {
    return fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

static bp_task *new_process(const bp_task *values) {
    bp_task *process = malloc(sizeof *process);
    if (process != NULL) {
        *process = *values;
        process->root.fd = process->directory_fd = process->threads_fd = process->statm_fd = -1;
        process->known = (bp_known_threads){0};
        process->members = (bp_tree_members){0};
        memset(process->marks, 0, sizeof process->marks);
    }
    return process;
}

static void mark(bp_task *process) {
    process->marks[0] = bp_fd_mark_of(process->directory_fd);
    process->marks[1] = bp_fd_mark_of(process->threads_fd);
    process->marks[2] = bp_fd_mark_of(process->statm_fd);
}

/* True if the descriptors that were opened are still what they were. */
static bool is_whole(const bp_task *process) {
    return bp_fd_is_ours(process->directory_fd, process->marks[0]) &&
           bp_fd_is_ours(process->threads_fd, process->marks[1]) &&
           bp_fd_is_ours(process->statm_fd, process->marks[2]);
}

bugpack_status bp_task_open_below(const bp_proc_root *root, pid_t pid, bool with_descendants,
                                  bp_task **ret_task, bugpack_error *error) {
    char name[24] = "self";
    if (pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)pid);
    }
    if (pid > 0) {
        (void)snprintf(name, sizeof name, "%d", (int)pid);
    }
    /* All members of a tree are counted in one way: by their files, in clock ticks. */
    bp_task *process =
        new_process(&(bp_task){.pid = pid > 0 ? pid : getpid(),
                               .is_own = pid == 0 && root->has_our_ids && !with_descendants,
                               .has_tree = with_descendants,
                               .root = *root});
    if (process == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    bugpack_status status = open_descriptors(process, root->fd, name, error);
    if (status == BUGPACK_OK && with_descendants) {
        process->root.fd = duplicate(root->fd);
        if (process->root.fd < 0) {
            status = bp_fail_errno(error, errno, "cannot hold /proc");
        }
    }
    if (status != BUGPACK_OK) {
        bp_task_close(process);
        return status;
    }
    mark(process);
    *ret_task = process;
    return BUGPACK_OK;
}

bugpack_status bp_task_open(pid_t pid, bool with_descendants, bp_task **ret_task,
                            bugpack_error *error) {
    bp_proc_root root = {.fd = -1};
    pid = pid == getpid() ? 0 : pid;
    bugpack_status status = open_root(&root, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (pid > 0 && !root.has_our_ids) {
        /* In this /proc the id may be another process's. */
        status = bp_fail(error, BUGPACK_ERR_DENIED,
                         "cannot look at process %d: /proc is of another pid namespace than ours",
                         (int)pid);
    } else {
        status = bp_task_open_below(&root, pid, with_descendants, ret_task, error);
    }
    (void)close(root.fd);
    return status;
}

/* False without memory. */
static bool copy_members(const bp_task *from, bp_task *to) {
    size_t count = from->members.count;
    to->members.items = malloc((count + 1) * sizeof *to->members.items);
    if (to->members.items == NULL) {
        return false;
    }
    if (count > 0) {
        memcpy(to->members.items, from->members.items, count * sizeof *to->members.items);
    }
    to->members.count = to->members.capacity = count;
    return true;
}

/*
 * Descriptors that are read by position, or not read at all, are duplicated. The list of threads
 * has an offset, which duplicates share (dup(2)), so it is opened anew through the directory that
 * pins the process. When that has ended the open fails, even if its pid was reused.
 */
bugpack_status bp_task_clone(const bp_task *process, bp_task **ret_clone, bugpack_error *error) {
    bp_task *clone = new_process(process);
    if (clone == NULL || !copy_members(process, clone)) {
        bp_task_close(clone);
        return bp_fail_memory(error, "hold a process twice");
    }
    clone->directory_fd = duplicate(process->directory_fd);
    clone->statm_fd = duplicate(process->statm_fd);
    clone->root.fd = duplicate(process->root.fd);
    if (clone->directory_fd >= 0 && clone->statm_fd >= 0 &&
        (clone->root.fd >= 0 || process->root.fd < 0)) {
        clone->threads_fd = openat(clone->directory_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (clone->threads_fd >= 0) {
        mark(clone);
        *ret_clone = clone;
        return BUGPACK_OK;
    }
    bugpack_status status =
        bp_proc_is_gone(errno) ? bp_process_fail_ended(process, error)
                               : bp_fail_process_errno(error, errno, "cannot hold process %d twice",
                                                       (int)process->pid);
    bp_task_close(clone);
    return status;
}

bugpack_status bp_process_hold(bp_task *process, bugpack_error *error) {
    bp_task *again = NULL;
    if (process->root.is_recording || is_whole(process)) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_task_open(process->pid, process->has_tree, &again, error);
    if (status == BUGPACK_OK && again->start_ticks != process->start_ticks) {
        bp_task_close(again);
        status = bp_process_fail_ended(process, error);
    }
    if (status == BUGPACK_OK) {
        again->was_zombie = process->was_zombie;
        again->known = process->known;
        again->members = process->members;
        again->pending = process->pending;
        again->lost = process->lost;
        *process = *again;
        free(again);
    }
    return status;
}

void bp_task_close(bp_task *process) {
    if (process == NULL) {
        return;
    }
    /* Without a mark it was never opened whole: its descriptors were not handed out yet, so no one
     * else can have closed and reused them. */
    bool is_ours = process->marks[0].inode == 0 || is_whole(process);
    const int fds[] = {process->root.fd, process->directory_fd, process->threads_fd,
                       process->statm_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0] && is_ours; i++) {
        bp_file_close(fds[i]);
    }
    free(process->known.items);
    free(process->members.items);
    free(process);
}

pid_t bp_task_pid(const bp_task *task) {
    return task->pid;
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", task->name);
}

uint64_t bp_process_boottime_ns(const bp_task *process) {
    return process->root.is_recording ? process->root.boottime_ns
                                      : bp_clock_read_ns(CLOCK_BOOTTIME);
}

bool bp_task_program_now(bp_task *process, bp_task_program *ret_program) {
    bp_proc_stat stat;
    if (read_any_stat(process, &stat, NULL) != BUGPACK_OK ||
        stat.start_ticks != process->start_ticks) {
        return false;
    }
    *ret_program = (bp_task_program){.image = stat.stack_start};
    memcpy(ret_program->name, stat.name, sizeof ret_program->name);
    return true;
}

/* A clock tick is coarse: the start may seem to be a little later than now. */
bool bp_task_uptime(bp_task *process, uint64_t *ret_uptime_ns) {
    uint64_t now_ns = bp_process_boottime_ns(process);
    uint64_t per_sec = process->root.ticks_per_sec;
    uint64_t secs = process->start_ticks / per_sec;
    uint64_t rest_ns = process->start_ticks % per_sec * BP_NS_PER_SEC / per_sec;
    uint64_t began_ns =
        secs > UINT64_MAX / BP_NS_PER_SEC - 1 ? UINT64_MAX : secs * BP_NS_PER_SEC + rest_ns;
    *ret_uptime_ns = now_ns > began_ns ? now_ns - began_ns : 0;
    return true;
}
