/*
 * A process together with its descendants: one sum that only grows.
 *
 * The time of a descendant that ended is in its parent's time of waited-for children (getrusage(2),
 * RUSAGE_CHILDREN), so a sum over all that live, with that time, normally loses nothing. It does
 * when nobody waited: SIGCHLD was ignored, or the parent ended first and a stranger waited. So each
 * process's last sum is remembered, and what ended without turning up elsewhere is kept as lost.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/linux/task_private.h"

/* A process that was in the last snapshot. */
typedef struct member {
    pid_t pid;
    uint64_t start_ticks;
    uint64_t cpu_ticks; /* its own and its waited-for children's */
    uint64_t waited_ticks;
} member;

typedef struct member_list {
    member *members;
    size_t count, capacity;
} member_list;

struct bp_task_tree {
    bp_proc_root root; /* with a descriptor of its own */
    member_list known;
    uint64_t lost_ticks;
};

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool push_member(member_list *list, const member *added) {
    if (list->count == list->capacity) {
        size_t capacity = list->capacity == 0 ? 16 : list->capacity * 2;
        member *members = realloc(list->members, capacity * sizeof *members);
        if (members == NULL) {
            return false;
        }
        list->members = members;
        list->capacity = capacity;
    }
    list->members[list->count++] = *added;
    return true;
}

static member *find_member(const member_list *list, pid_t pid, uint64_t start_ticks) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->members[i].pid == pid && list->members[i].start_ticks == start_ticks) {
            return &list->members[i];
        }
    }
    return NULL;
}

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
        free(tree->known.members);
        free(tree);
    }
}

bugpack_status bp_task_tree_clone(const struct bp_task_tree *tree, struct bp_task_tree **ret_clone,
                                  bugpack_error *error) {
    struct bp_task_tree *clone = NULL;
    bugpack_status status = bp_task_tree_new(&tree->root, &clone, error);
    for (size_t i = 0; status == BUGPACK_OK && i < tree->known.count; i++) {
        if (!push_member(&clone->known, &tree->known.members[i])) {
            status = bp_fail_memory(error, "hold a process and its descendants twice");
        }
    }
    if (status != BUGPACK_OK) {
        bp_task_tree_free(clone);
        return status;
    }
    clone->lost_ticks = tree->lost_ticks;
    *ret_clone = clone;
    return BUGPACK_OK;
}

/* Puts the threads of one process behind those of the others, and adds its memory. */
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
    all->has_memory = all->has_memory || one->has_memory;
    all->rss_bytes = add(all->rss_bytes, one->rss_bytes);
    all->vm_size_bytes = add(all->vm_size_bytes, one->vm_size_bytes);
    return true;
}

/* What a snapshot that is being taken works on. */
struct walk {
    struct bp_task_tree *tree;
    bool with_names;
    bp_pid_list queue;
    member_list found;
    bp_task_snapshot *all;
};

/* Notes a process and queues its children. */
static bugpack_status note_member(struct walk *walk, bp_task *task, const bp_task_snapshot *one,
                                  bugpack_error *error) {
    member noted = {.pid = task->pid,
                    .start_ticks = task->start_ticks,
                    .cpu_ticks = add(one->process_cpu, one->waited_cpu),
                    .waited_ticks = one->waited_cpu};
    if (!push_member(&walk->found, &noted)) {
        return bp_fail_memory(error, "look at the descendants of a process");
    }
    return bp_task_list_children(task, walk->tree->root.fd, one, &walk->queue, error);
}

/*
 * One process of the queue. What is gone, is not ours to look at, or has an id that somebody else
 * got, is left out: `known` names the one that is meant, NULL any.
 */
static bugpack_status visit(struct walk *walk, pid_t pid, const member *known,
                            bugpack_error *error) {
    bp_task *task = NULL;
    bp_task_snapshot one = {0};
    bugpack_status status = bp_task_open_at(&walk->tree->root, pid, &task, error);
    bool is_meant = status == BUGPACK_OK && !task->was_zombie &&
                    (known == NULL || known->start_ticks == task->start_ticks) &&
                    find_member(&walk->found, pid, task->start_ticks) == NULL;
    if (is_meant) {
        status = bp_task_snapshot_one(task, walk->with_names, &one, error);
    }
    if (status == BUGPACK_OK && is_meant) {
        status = merge(walk->all, &one) ? note_member(walk, task, &one, error)
                                        : bp_fail_memory(error, "add up a process's descendants");
    }
    bp_task_snapshot_release(&one);
    bp_task_close(task);
    return status == BUGPACK_ERR_NO_MEMORY ? status : BUGPACK_OK;
}

static bugpack_status visit_all(struct walk *walk, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < walk->queue.count; i++) {
        status = visit(walk, walk->queue.pids[i], NULL, error);
    }
    return status;
}

/* Those whose parent has ended are nobody's children any more, and still ours. */
static bugpack_status visit_known(struct walk *walk, bugpack_error *error) {
    const member_list *known = &walk->tree->known;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < known->count; i++) {
        const member *one = &known->members[i];
        if (find_member(&walk->found, one->pid, one->start_ticks) == NULL) {
            walk->queue.count = 0;
            status = visit(walk, one->pid, one, error);
            if (status == BUGPACK_OK) {
                status = visit_all(walk, error);
            }
        }
    }
    return status;
}

/* What ended since the last snapshot, less what its parents, or theirs, have taken over. */
static uint64_t newly_lost(const struct walk *walk) {
    uint64_t ended = 0;
    uint64_t taken_over = 0;
    for (size_t i = 0; i < walk->tree->known.count; i++) {
        const member *before = &walk->tree->known.members[i];
        const member *now = find_member(&walk->found, before->pid, before->start_ticks);
        if (now == NULL) {
            ended = add(ended, before->cpu_ticks);
        } else if (now->waited_ticks > before->waited_ticks) {
            taken_over = add(taken_over, now->waited_ticks - before->waited_ticks);
        }
    }
    return ended > taken_over ? ended - taken_over : 0;
}

bugpack_status bp_task_tree_add(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                bugpack_error *error) {
    struct bp_task_tree *tree = task->tree;
    struct walk walk = {.tree = tree, .with_names = with_names, .all = snapshot};
    bugpack_status status = note_member(&walk, task, snapshot, error);
    if (status == BUGPACK_OK) {
        status = visit_all(&walk, error);
    }
    if (status == BUGPACK_OK) {
        status = visit_known(&walk, error);
    }
    if (status == BUGPACK_OK) {
        tree->lost_ticks = add(tree->lost_ticks, newly_lost(&walk));
        snapshot->process_cpu = tree->lost_ticks;
        for (size_t i = 0; i < walk.found.count; i++) {
            snapshot->process_cpu = add(snapshot->process_cpu, walk.found.members[i].cpu_ticks);
        }
        snapshot->waited_cpu = 0;
        free(tree->known.members);
        tree->known = walk.found;
        walk.found = (member_list){0};
    }
    free(walk.found.members);
    free(walk.queue.pids);
    return status;
}
