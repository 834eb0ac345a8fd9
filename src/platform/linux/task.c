/*
 * The task of platform/task.h: a process, or the tree below it, with a count of references.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/linux/task_private.h"

/* A task of an open process. With descendants it holds a duplicate of `proc_fd`. */
static bugpack_status make_task(bp_process *process, bool has_tree, int proc_fd, bp_task **ret_task,
                                bugpack_error *error) {
    bp_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    process->root.fd = -1;
    if (has_tree) {
        process->root.fd = fcntl(proc_fd, F_DUPFD_CLOEXEC, 0);
        if (process->root.fd < 0) {
            free(task);
            return bp_fail_errno(error, errno, "cannot hold /proc");
        }
        /* All members are counted in one way: by their files, in clock ticks. */
        process->is_own = false;
    }
    atomic_init(&task->reference_count, 1);
    task->process = *process;
    task->has_tree = has_tree;
    *ret_task = task;
    return BUGPACK_OK;
}

bugpack_status bp_task_open_below(const bp_proc_root *root, pid_t pid, bool with_descendants,
                                  bp_task **ret_task, bugpack_error *error) {
    bp_process process;
    bugpack_status status = bp_process_open(root, pid, &process, error);
    if (status == BUGPACK_OK) {
        status = make_task(&process, with_descendants, root->fd, ret_task, error);
        if (status != BUGPACK_OK) {
            bp_process_close(&process);
        }
    }
    return status;
}

static bugpack_status open_task(pid_t pid, bool with_descendants, bp_task **ret_task,
                                bugpack_error *error) {
    bp_proc_root root;
    pid = pid == getpid() ? 0 : pid;
    bugpack_status status = bp_proc_root_open(&root, error);
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

bugpack_status bp_task_open(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return open_task(pid, false, ret_task, error);
}

bugpack_status bp_task_open_tree(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return open_task(pid, true, ret_task, error);
}

bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error) {
    bp_process process;
    bp_task *clone = NULL;
    bugpack_status status = bp_process_clone(&task->process, &process, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = make_task(&process, task->has_tree, task->process.root.fd, &clone, error);
    if (status != BUGPACK_OK) {
        bp_process_close(&process);
        return status;
    }
    status = bp_process_tree_copy(&task->tree, &clone->tree, error);
    if (status != BUGPACK_OK) {
        bp_task_close(clone);
        return status;
    }
    *ret_clone = clone;
    return BUGPACK_OK;
}

void bp_task_close(bp_task *task) {
    if (task == NULL ||
        atomic_fetch_sub_explicit(&task->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    if (task->has_tree) {
        (void)close(task->process.root.fd);
        bp_process_tree_release(&task->tree);
    }
    bp_process_close(&task->process);
    free(task);
}

bp_task *bp_task_retain(bp_task *task) {
    atomic_fetch_add_explicit(&task->reference_count, 1, memory_order_relaxed);
    return task;
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", task->process.name);
}

pid_t bp_task_pid(const bp_task *task) {
    return task->process.pid;
}

/* The counters of a member of the tree, and its children: best effort, but for memory. */
static bugpack_status note_member(const bp_process *process, int proc_fd,
                                  const bp_task_snapshot *one, bp_tree_member *ret_member,
                                  bp_pid_list *children) {
    *ret_member = (bp_tree_member){.pid = process->pid,
                                   .start = process->start_ticks,
                                   .cpu = one->process_cpu + one->waited_cpu,
                                   .waited = one->waited_cpu};
    bugpack_status status = bp_process_list_children(process, proc_fd, one, children, NULL);
    return status == BUGPACK_ERR_NO_MEMORY ? status : BUGPACK_OK;
}

static bugpack_status read_once(const bp_proc_root *root, pid_t pid, bool with_names,
                                bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                bp_pid_list *children) {
    bp_process process;
    bp_task_snapshot one = {0};
    bugpack_status status = bp_process_open(root, pid, &process, NULL);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_process_snapshot(&process, with_names, &one, NULL);
    if (status == BUGPACK_OK) {
        status = note_member(&process, root->fd, &one, ret_member, children);
    }
    if (status == BUGPACK_OK && !process.was_zombie) {
        *ret_snapshot = one;
        one = (bp_task_snapshot){0};
    }
    bp_task_snapshot_release(&one);
    bp_process_close(&process);
    return status;
}

static bugpack_status read_member(void *context, pid_t pid, bool with_names,
                                  bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                  bp_pid_list *children) {
    const bp_proc_root *root = context;
    bugpack_status status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        /* It may have ended while it was read, and be a zombie now. */
        status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    }
    return status;
}

/* Adds the counters of all descendants to the snapshot of the first process. */
static bugpack_status add_descendants(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                      bugpack_error *error) {
    bp_proc_root *root = &task->process.root;
    bp_tree_reader reader = {.read = read_member, .context = root};
    bp_tree_member first;
    bp_pid_list children = {0};
    bugpack_status status = note_member(&task->process, root->fd, snapshot, &first, &children);
    status = status == BUGPACK_OK ? bp_process_tree_add(&task->tree, &reader, with_names, &first,
                                                        &children, snapshot, error)
                                  : bp_fail_memory(error, "look at the descendants of a process");
    free(children.pids);
    return status;
}

bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = bp_process_snapshot(&task->process, with_names, &snapshot, error);
    if (status == BUGPACK_OK && task->has_tree) {
        status = add_descendants(task, with_names, &snapshot, error);
    }
    if (status == BUGPACK_OK) {
        *ret_snapshot = snapshot;
    } else {
        bp_task_snapshot_release(&snapshot);
    }
    return status;
}
