/*
 * How the members of a process tree are read from /proc (platform/process_tree.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/linux/task_private.h"

struct bp_task_tree {
    bp_proc_root root; /* with a descriptor of its own */
    bp_process_tree tree;
};

bugpack_status bp_task_tree_new(const bp_proc_root *root, struct bp_task_tree **ret_tree,
                                bugpack_error *error) {
    struct bp_task_tree *tree = calloc(1, sizeof *tree);
    if (tree == NULL) {
        return bp_fail_memory(error, "open a process and its descendants");
    }
    tree->root = *root;
    tree->root.fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
    if (tree->root.fd < 0) {
        int dup_errno = errno;
        free(tree);
        return bp_fail_errno(error, dup_errno, "cannot hold /proc");
    }
    *ret_tree = tree;
    return BUGPACK_OK;
}

void bp_task_tree_free(struct bp_task_tree *tree) {
    if (tree != NULL) {
        (void)close(tree->root.fd);
        bp_process_tree_release(&tree->tree);
        free(tree);
    }
}

bugpack_status bp_task_tree_clone(const struct bp_task_tree *tree, struct bp_task_tree **ret_clone,
                                  bugpack_error *error) {
    struct bp_task_tree *clone = NULL;
    bugpack_status status = bp_task_tree_new(&tree->root, &clone, error);
    if (status == BUGPACK_OK) {
        status = bp_process_tree_copy(&tree->tree, &clone->tree, error);
    }
    if (status != BUGPACK_OK) {
        bp_task_tree_free(clone);
        return status;
    }
    *ret_clone = clone;
    return BUGPACK_OK;
}

/* What a process has used. Its children are best effort: only memory counts as a failure. */
static bugpack_status note_member(const bp_task *task, int proc_fd, const bp_task_snapshot *one,
                                  bp_tree_member *ret_member, bp_pid_list *children) {
    *ret_member = (bp_tree_member){.pid = task->pid,
                                   .start = task->start_ticks,
                                   .cpu = one->process_cpu + one->waited_cpu,
                                   .waited = one->waited_cpu};
    bugpack_status status = bp_task_list_children(task, proc_fd, one, children, NULL);
    return status == BUGPACK_ERR_NO_MEMORY ? status : BUGPACK_OK;
}

static bugpack_status read_once(const bp_proc_root *root, pid_t pid, bool with_names,
                                bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                bp_pid_list *children) {
    bp_task *task = NULL;
    bp_task_snapshot one = {0};
    bugpack_status status = bp_task_open_at(root, pid, &task, NULL);
    if (status == BUGPACK_OK) {
        status = bp_task_snapshot_one(task, with_names, &one, NULL);
    }
    if (status == BUGPACK_OK) {
        status = note_member(task, root->fd, &one, ret_member, children);
    }
    if (status == BUGPACK_OK && !task->was_zombie) {
        *ret_snapshot = one;
        one = (bp_task_snapshot){0};
    }
    bp_task_snapshot_release(&one);
    bp_task_close(task);
    return status;
}

static bugpack_status read_member(void *context, pid_t pid, bool with_names,
                                  bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                  bp_pid_list *children) {
    const bp_proc_root *root = context;
    bugpack_status status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        /* It may have ended while it was read, and wait for its parent now. */
        status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    }
    return status;
}

bugpack_status bp_task_tree_add(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                bugpack_error *error) {
    struct bp_task_tree *tree = task->tree;
    bp_tree_reader reader = {.read = read_member, .context = &tree->root};
    bp_tree_member first;
    bp_pid_list children = {0};
    bugpack_status status = note_member(task, tree->root.fd, snapshot, &first, &children);
    if (status == BUGPACK_OK) {
        status = bp_process_tree_add(&tree->tree, &reader, with_names, &first, &children, snapshot,
                                     error);
    } else {
        status = bp_fail_memory(error, "look at the descendants of a process");
    }
    free(children.pids);
    return status;
}
