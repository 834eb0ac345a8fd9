#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "platform/linux/process_private.h"

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool push_member(bp_tree_members *list, const bp_tree_member *added) {
    if (!bp_array_reserve(&list->items, list->count, &list->capacity)) {
        return false;
    }
    list->items[list->count++] = *added;
    return true;
}

static const bp_tree_member *find_member(const bp_tree_members *list, const bp_tree_member *like) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].pid == like->pid && list->items[i].start == like->start) {
            return &list->items[i];
        }
    }
    return NULL;
}

static bool has_pid(const bp_tree_members *list, pid_t pid) {
    size_t i = 0;
    while (i < list->count && list->items[i].pid != pid) {
        i++;
    }
    return i < list->count;
}

/* Appends the threads of one process and adds its memory. */
static bool merge(bp_task_snapshot *all, const bp_task_snapshot *one) {
    if (one->thread_count > 0) {
        bp_thread_counters *threads =
            realloc(all->threads, (all->thread_count + one->thread_count) * sizeof *threads);
        if (threads == NULL) {
            return false;
        }
        memcpy(threads + all->thread_count, one->threads, one->thread_count * sizeof *threads);
        all->threads = threads;
        all->thread_count += one->thread_count;
    }
    all->vanished_count += one->vanished_count;
    all->unread_count += one->unread_count;
    all->has_memory = all->has_memory || one->has_memory;
    all->rss_bytes = add(all->rss_bytes, one->rss_bytes);
    all->vm_size_bytes = add(all->vm_size_bytes, one->vm_size_bytes);
    return true;
}

/* The state of one walk. */
struct walk {
    bp_task *first;
    bool with_names;
    bp_pid_list *queue;
    const bp_tree_members *before; /* of the last round */
    bp_tree_members found;
    bp_task_snapshot *all;
};

/*
 * Adds one process of the queue. A process that has ended, that we may not read, or whose pid was
 * reused is skipped. `known` identifies the process that is meant; NULL for any.
 */
static bugpack_status visit(struct walk *walk, pid_t pid, const bp_tree_member *known,
                            bugpack_error *error) {
    bp_tree_member member = {0};
    bp_task_snapshot one = {0};
    size_t queued = walk->queue->count;
    bugpack_status status =
        bp_process_read_member(walk->first, pid, walk->with_names, &member, &one, walk->queue);
    if (status == BUGPACK_ERR_NO_PROCESS || status == BUGPACK_ERR_NO_MEMORY) {
        goto out;
    }
    if (status != BUGPACK_OK && known == NULL) {
        /* One of the last round is visited once more, and counted then. */
        walk->all->unread_count += !has_pid(walk->before, pid);
        goto out;
    }
    walk->all->unread_count += status != BUGPACK_OK;
    if (status != BUGPACK_OK) {
        /* It may still be running: counting it as ended would double its time when it is seen
         * again. */
        member = *known;
    }
    bool is_meant = (known == NULL || known->start == member.start) &&
                    find_member(&walk->found, &member) == NULL;
    if (!is_meant) {
        walk->queue->count = queued; /* another process's children */
        status = BUGPACK_OK;
    } else if (merge(walk->all, &one) && push_member(&walk->found, &member)) {
        status = BUGPACK_OK;
    } else {
        status = BUGPACK_ERR_NO_MEMORY;
    }
out:
    bp_task_snapshot_release(&one);
    return status == BUGPACK_ERR_NO_MEMORY
               ? bp_fail_memory(error, "look at the descendants of a process")
               : BUGPACK_OK;
}

static bugpack_status visit_all(struct walk *walk, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < walk->queue->count; i++) {
        status = visit(walk, walk->queue->pids[i], NULL, error);
    }
    return status;
}

/* A process whose parent has ended is not found below it, and still belongs to the tree. */
static bugpack_status visit_known(struct walk *walk, const bp_tree_members *known,
                                  bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < known->count; i++) {
        const bp_tree_member *one = &known->items[i];
        if (find_member(&walk->found, one) == NULL) {
            walk->queue->count = 0;
            status = visit(walk, one->pid, one, error);
            if (status == BUGPACK_OK) {
                status = visit_all(walk, error);
            }
        }
    }
    return status;
}

/* Ends a round: accounts for the processes that ended since the last one, less what their parents
 * have taken over. */
static void settle(bp_task *task, const bp_tree_members *found) {
    uint64_t ended = 0;
    uint64_t taken_over = 0;
    for (size_t i = 0; i < task->members.count; i++) {
        const bp_tree_member *before = &task->members.items[i];
        const bp_tree_member *now = find_member(found, before);
        if (now == NULL) {
            ended = add(ended, before->cpu);
        } else if (now->waited > before->waited) {
            taken_over = add(taken_over, now->waited - before->waited);
        }
    }
    uint64_t gone = add(task->pending, ended);
    uint64_t rest = gone > taken_over ? gone - taken_over : 0;
    /* While processes end, a parent's own parent may still take over its time. */
    task->pending = ended > 0 ? rest : 0;
    task->lost = add(task->lost, rest - task->pending);
}

/* Adds the counters of all descendants to the snapshot of the first process. A failure leaves the
 * members as they were. */
static bugpack_status add_descendants(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                      bugpack_error *error) {
    bp_tree_member first;
    bp_pid_list children = {0};
    struct walk walk = {.first = task,
                        .with_names = with_names,
                        .queue = &children,
                        .before = &task->members,
                        .all = snapshot};
    bool has_memory =
        bp_process_note(task, task->root.fd, snapshot, &first, &children) == BUGPACK_OK &&
        push_member(&walk.found, &first);
    bugpack_status status = has_memory
                                ? visit_all(&walk, error)
                                : bp_fail_memory(error, "look at the descendants of a process");
    if (status != BUGPACK_OK) {
        goto out;
    }
    status = visit_known(&walk, &task->members, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    settle(task, &walk.found);
    snapshot->process_cpu = add(task->lost, task->pending);
    for (size_t i = 0; i < walk.found.count; i++) {
        snapshot->process_cpu = add(snapshot->process_cpu, walk.found.items[i].cpu);
    }
    snapshot->waited_cpu = 0;
    free(task->members.items);
    task->members = walk.found;
    walk.found = (bp_tree_members){0};
out:
    free(children.pids);
    free(walk.found.items);
    return status;
}

bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = bp_process_snapshot(task, with_names, &snapshot, error);
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

bugpack_status bp_task_snapshot_take_last(bp_task *task, bool with_names,
                                          bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    bugpack_status status = bp_task_snapshot_take(task, with_names, ret_snapshot, error);
    if (status == BUGPACK_ERR_NO_PROCESS && !task->was_zombie) {
        task->was_zombie = true; /* that it is one is no reason to refuse it */
        bugpack_status last = bp_task_snapshot_take(task, with_names, ret_snapshot, NULL);
        task->was_zombie = false;
        status = last == BUGPACK_OK ? BUGPACK_OK : status;
    }
    return status;
}
