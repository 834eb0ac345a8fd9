/*
 * Taking hold of a process, and reading it.
 *
 * A pid is not held by anything on macOS: there is no descriptor for it without a task port, which
 * only debuggers get. So each reading of another process ends with a look at its start time: as
 * long as that is the old one, it has been the same process all the while.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/darwin/task_private.h"

bool bp_darwin_pidinfo(pid_t pid, int flavor, uint64_t argument, void *ret_info, int bytes) {
    errno = 0;
    int count = proc_pidinfo(pid, flavor, argument, ret_info, bytes);
    if (count == bytes) {
        return true;
    }
    /* It says 0 for a failure, and leaves errno alone when it merely has nothing to give. */
    errno = count > 0 || errno == 0 ? EBADMSG : errno;
    return false;
}

int bp_darwin_pidlist(pid_t pid, int flavor, void *list, int bytes) {
    errno = 0;
    int count = proc_pidinfo(pid, flavor, 0, list, bytes);
    return count < 0 || (count == 0 && errno != 0) ? -1 : count;
}

bugpack_status bp_darwin_fail_ended(const bp_task *task, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d has ended", (int)task->pid);
}

bugpack_status bp_darwin_fail_call(const bp_task *task, const char *call, bugpack_error *error) {
    if (errno == ESRCH) {
        return bp_darwin_fail_ended(task, error);
    }
    return bp_fail_process_errno(error, errno, "cannot look at process %d with %s", (int)task->pid,
                                 call);
}

static bool has_ended(const struct proc_bsdinfo *info) {
    return bp_darwin_state(info->pbi_status, 0) == 'Z' || (info->pbi_flags & PROC_FLAG_INEXIT) != 0;
}

bugpack_status bp_darwin_check_same(const bp_task *task, struct proc_bsdinfo *ret_info,
                                    bugpack_error *error) {
    struct proc_bsdinfo info;
    if (!bp_darwin_pidinfo(task->pid, PROC_PIDTBSDINFO, 0, &info, (int)sizeof info)) {
        return bp_darwin_fail_call(task, "proc_pidinfo(PROC_PIDTBSDINFO)", error);
    }
    bool is_same = !task->has_start || (info.pbi_start_tvsec == task->start.seconds &&
                                        info.pbi_start_tvusec == task->start.microseconds);
    if (!is_same || (has_ended(&info) && !task->is_own)) {
        return bp_darwin_fail_ended(task, error);
    }
    *ret_info = info;
    return BUGPACK_OK;
}

static void take_identity(bp_task *task, const struct proc_bsdinfo *info) {
    const char *name = info->pbi_name;
    size_t capacity = sizeof info->pbi_name;
    if (name[0] == '\0') {
        name = info->pbi_comm; /* a shorter one, which every process has */
        capacity = sizeof info->pbi_comm;
    }
    bp_darwin_copy_name(task->name, name, capacity);
    task->has_start = true;
    task->start =
        (bp_darwin_start){.seconds = info->pbi_start_tvsec, .microseconds = info->pbi_start_tvusec};
    bp_darwin_uptime_begin(task);
}

/* Learns which process this is. Our own is sampled also where that cannot be had. */
static bugpack_status identify(bp_task *task, bugpack_error *error) {
    struct proc_bsdinfo info;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_darwin_check_same(task, &info, &detail);
    if (status == BUGPACK_OK) {
        take_identity(task, &info);
    } else if (status == BUGPACK_ERR_NO_PROCESS && !task->is_own) {
        return bp_fail(error, status, "no process with id %d", (int)task->pid);
    } else if (!task->is_own && error != NULL) {
        *error = detail;
    }
    return task->is_own ? BUGPACK_OK : status;
}

static bp_task *task_new(pid_t pid) {
    bp_task *task = calloc(1, sizeof *task);
    if (task != NULL) {
        atomic_init(&task->reference_count, 1);
        task->pid = pid;
    }
    return task;
}

bugpack_status bp_task_open(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    if (pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)pid);
    }
    bp_task *task = task_new(pid == 0 ? getpid() : pid);
    if (task == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    task->is_own = task->pid == getpid();
    bugpack_status status = bp_darwin_read_ticks(task, error);
    if (status == BUGPACK_OK) {
        status = identify(task, error);
    }
    if (status != BUGPACK_OK) {
        bp_task_close(task);
        return status;
    }
    *ret_task = task;
    return BUGPACK_OK;
}

bugpack_status bp_task_open_tree(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    bp_task *task = NULL;
    bugpack_status status = bp_task_open(pid, &task, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    task->tree = calloc(1, sizeof *task->tree);
    if (task->tree == NULL) {
        bp_task_close(task);
        return bp_fail_memory(error, "open a process and its descendants");
    }
    *ret_task = task;
    return BUGPACK_OK;
}

void bp_task_close(bp_task *task) {
    if (task == NULL ||
        atomic_fetch_sub_explicit(&task->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (task->tree != NULL) {
        bp_process_tree_release(task->tree);
        free(task->tree);
    }
    free(task);
}

bp_task *bp_task_retain(bp_task *task) {
    atomic_fetch_add_explicit(&task->reference_count, 1, memory_order_relaxed);
    return task;
}

static bugpack_status copy_tree(const bp_task *task, bp_task *clone, bugpack_error *error) {
    if (task->tree == NULL) {
        return BUGPACK_OK;
    }
    clone->tree = calloc(1, sizeof *clone->tree);
    return clone->tree != NULL ? bp_process_tree_copy(task->tree, clone->tree, error)
                               : bp_fail_memory(error, "hold a process twice");
}

bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error) {
    if (!task->is_own) {
        struct proc_bsdinfo info;
        bugpack_status status = bp_darwin_check_same(task, &info, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    bp_task *clone = task_new(task->pid);
    bugpack_status status = clone != NULL ? copy_tree(task, clone, error)
                                          : bp_fail_memory(error, "hold a process twice");
    if (status != BUGPACK_OK) {
        bp_task_close(clone);
        return status;
    }
    /* Member by member: what changes with each snapshot may be changing now. */
    clone->is_own = task->is_own;
    memcpy(clone->name, task->name, sizeof clone->name);
    clone->has_start = task->has_start;
    clone->start = task->start;
    clone->clock_tick = task->clock_tick;
    clone->kernel_tick = task->kernel_tick;
    clone->uptime.is_known = task->uptime.is_known;
    clone->uptime.age_ns = task->uptime.age_ns;
    clone->uptime.opened_ns = task->uptime.opened_ns;
    *ret_clone = clone;
    return BUGPACK_OK;
}

pid_t bp_task_pid(const bp_task *task) {
    return task->pid;
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", task->name);
}

bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = task->is_own
                                ? bp_darwin_snapshot_own(task, with_names, &snapshot, error)
                                : bp_darwin_snapshot_other(task, with_names, &snapshot, error);
    if (status == BUGPACK_OK && task->tree != NULL) {
        status = bp_darwin_tree_add(task, with_names, &snapshot, error);
    }
    if (status != BUGPACK_OK) {
        bp_task_snapshot_release(&snapshot);
        return status;
    }
    bp_darwin_uptime_read(task, &snapshot);
    *ret_snapshot = snapshot;
    return BUGPACK_OK;
}
