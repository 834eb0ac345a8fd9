#include <stdio.h>
#include <stdlib.h>

#include "base/status.h"
#include "platform/process.h"

struct bp_task {
    bp_process *process;
    bool has_tree;
    bp_process_tree tree; /* of the process and its descendants */
};

bugpack_status bp_task_new(bp_process *process, bool with_descendants, bp_task **ret_task,
                           bugpack_error *error) {
    bp_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    task->process = process;
    task->has_tree = with_descendants;
    *ret_task = task;
    return BUGPACK_OK;
}

static bugpack_status open_task(pid_t pid, bool with_descendants, bp_task **ret_task,
                                bugpack_error *error) {
    bp_process *process = NULL;
    bugpack_status status = bp_process_open(pid, with_descendants, &process, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_task_new(process, with_descendants, ret_task, error);
    if (status != BUGPACK_OK) {
        bp_process_close(process);
    }
    return status;
}

bugpack_status bp_task_open(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return open_task(pid, false, ret_task, error);
}

bugpack_status bp_task_open_tree(pid_t pid, bp_task **ret_task, bugpack_error *error) {
    return open_task(pid, true, ret_task, error);
}

bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error) {
    bp_process *process = NULL;
    bp_task *clone = NULL;
    bugpack_status status = bp_process_clone(task->process, &process, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_task_new(process, task->has_tree, &clone, error);
    if (status != BUGPACK_OK) {
        bp_process_close(process);
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
    if (task != NULL) {
        bp_process_close(task->process);
        bp_process_tree_release(&task->tree);
        free(task);
    }
}

bp_process *bp_task_process(bp_task *task) {
    return task->process;
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", bp_process_name(task->process));
}

pid_t bp_task_pid(const bp_task *task) {
    return bp_process_pid(task->process);
}

bool bp_task_uptime(bp_task *task, uint64_t *ret_uptime_ns) {
    return bp_process_uptime(task->process, ret_uptime_ns);
}

bool bp_task_program_now(bp_task *task, bp_task_program *ret_program) {
    return bp_process_program(task->process, ret_program);
}

void bp_task_reread_names(bp_task *task) {
    bp_process_reread_names(task->process);
}

bugpack_status bp_task_read_switches(const bp_task *task, bp_task_snapshot *snapshot,
                                     bugpack_error *error) {
    return bp_process_read_switches(task->process, snapshot, error);
}

/* Adds the counters of all descendants to the snapshot of the first process. */
static bugpack_status add_descendants(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                      bugpack_error *error) {
    bp_tree_reader reader = {.read = bp_process_read_member, .context = task->process};
    bp_tree_member first;
    bp_pid_list children = {0};
    bugpack_status status = bp_process_note(task->process, snapshot, &first, &children, error);
    if (status == BUGPACK_OK) {
        status = bp_process_tree_add(&task->tree, &reader, with_names, &first, &children, snapshot,
                                     error);
    }
    free(children.pids);
    return status;
}

/* Adds the descendants, where they belong to the task, and gives the snapshot to the caller. */
static bugpack_status finish(bp_task *task, bool with_names, bugpack_status status,
                             bp_task_snapshot snapshot, bp_task_snapshot *ret_snapshot,
                             bugpack_error *error) {
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

bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = bp_process_snapshot(task->process, with_names, &snapshot, error);
    return finish(task, with_names, status, snapshot, ret_snapshot, error);
}

bugpack_status bp_task_snapshot_take_last(bp_task *task, bool with_names,
                                          bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    bugpack_status status = bp_task_snapshot_take(task, with_names, ret_snapshot, error);
    bp_task_snapshot snapshot = {0};
    if (status != BUGPACK_ERR_NO_PROCESS ||
        bp_process_snapshot_ended(task->process, with_names, &snapshot, NULL) != BUGPACK_OK) {
        return status;
    }
    return finish(task, with_names, BUGPACK_OK, snapshot, ret_snapshot, error);
}
