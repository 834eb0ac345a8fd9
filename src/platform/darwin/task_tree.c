/*
 * How the members of a process tree are read on macOS (platform/process_tree.h).
 *
 * What each has used comes from proc_pid_rusage, in one answer: its own time, that of the children
 * that it waited for, and its start. It answers for a zombie, too, which every other call takes for
 * gone. The kernel adds an ended child to its parent where it is reaped, also when the parent
 * ignores SIGCHLD (reap_child_locked and proc_exit in xnu/bsd/kern/kern_exit.c), in ticks.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/darwin/task_private.h"

/* More processes than a Mac can have; the bound is for a kernel that says nonsense. */
static const size_t child_max = (size_t)1 << 20;

static bool read_usage(pid_t pid, bp_darwin_tick tick, bp_tree_member *ret_member) {
    struct rusage_info_v1 usage = {0};
    errno = 0;
    if (proc_pid_rusage(pid, RUSAGE_INFO_V1, (rusage_info_t *)&usage) != 0) {
        return false;
    }
    uint64_t own = bp_darwin_add(usage.ri_user_time, usage.ri_system_time);
    uint64_t waited = bp_darwin_add(usage.ri_child_user_time, usage.ri_child_system_time);
    *ret_member = (bp_tree_member){.pid = pid,
                                   .start = usage.ri_proc_start_abstime,
                                   .cpu = bp_darwin_ticks_to_ns(bp_darwin_add(own, waited), tick),
                                   .waited = bp_darwin_ticks_to_ns(waited, tick)};
    return true;
}

/* The bytes that were filled in; a failure, which is 0 with errno here, lists nobody. */
static int list_once(pid_t pid, pid_t *pids, size_t room) {
    int bytes = proc_listpids(PROC_PPID_ONLY, (uint32_t)pid, pids, (int)(room * sizeof *pids));
    return bytes > 0 ? bytes : 0;
}

/* Appends the children; false when memory is short. A list that fills its room may have been cut,
 * so it is read again into more. */
static bool list_children(pid_t pid, bp_pid_list *children) {
    pid_t *pids = NULL;
    size_t count = 0;
    size_t room = 16;
    do {
        room *= 2;
        pid_t *larger = realloc(pids, room * sizeof *pids);
        if (larger == NULL) {
            free(pids);
            return false;
        }
        pids = larger;
        count = (size_t)list_once(pid, pids, room) / sizeof *pids;
    } while (count >= room && room < child_max);
    bool is_added = true;
    for (size_t i = 0; is_added && i < count && i < room; i++) {
        is_added = pids[i] <= 0 || bp_pid_list_add(children, pids[i]);
    }
    free(pids);
    return is_added;
}

/*
 * Handles are addresses inside a process, the same in many: with the start and the id of their
 * process no two are. The product leaves room for every id, and its upper bits, which fall off,
 * repeat after four years.
 */
static void tell_handles_apart(const bp_task *task, bp_task_snapshot *snapshot) {
    uint64_t start_us = task->start.seconds * 1000000 + task->start.microseconds;
    for (size_t i = 0; task->lists_handles && i < snapshot->thread_count; i++) {
        snapshot->threads[i].birth = start_us * 131072 + (uint64_t)task->pid;
    }
}

/* Threads and memory of an open process, and what it has used, read while it is surely that one. */
static bugpack_status read_open(bp_task *task, bool with_names, bp_tree_member *ret_member,
                                bp_task_snapshot *ret_snapshot) {
    if (!read_usage(task->pid, task->kernel_tick, ret_member)) {
        return bp_darwin_fail_call(task, "proc_pid_rusage", NULL);
    }
    bugpack_status status = task->is_own
                                ? bp_darwin_snapshot_own(task, with_names, ret_snapshot, NULL)
                                : bp_darwin_snapshot_other(task, with_names, ret_snapshot, NULL);
    if (status == BUGPACK_OK) {
        tell_handles_apart(task, ret_snapshot);
    }
    return status;
}

static bugpack_status read_member(void *context, pid_t pid, bool with_names,
                                  bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                  bp_pid_list *children) {
    const bp_task *first = context;
    bp_task *task = NULL;
    bp_tree_member member;
    bugpack_status status = bp_task_open(pid, &task, NULL);
    if (status == BUGPACK_OK) {
        status = read_open(task, with_names, &member, ret_snapshot);
    }
    bp_task_close(task);
    if (status == BUGPACK_ERR_NO_PROCESS && read_usage(pid, first->kernel_tick, &member)) {
        status = BUGPACK_OK; /* it has ended, and waits for its parent */
    }
    if (status == BUGPACK_OK) {
        *ret_member = member;
        status = list_children(pid, children) ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
    }
    return status;
}

bugpack_status bp_darwin_tree_add(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                  bugpack_error *error) {
    bp_tree_reader reader = {.read = read_member, .context = task};
    bp_tree_member first;
    bp_pid_list children = {0};
    bugpack_status status = BUGPACK_OK;
    uint64_t taken_ns = bp_clock_monotonic_ns();
    if (!read_usage(task->pid, task->kernel_tick, &first)) {
        return bp_darwin_fail_call(task, "proc_pid_rusage", error);
    }
    tell_handles_apart(task, snapshot);
    status = list_children(task->pid, &children)
                 ? bp_process_tree_add(task->tree, &reader, with_names, &first, &children, snapshot,
                                       error)
                 : bp_fail_memory(error, "look at the descendants of a process");
    snapshot->taken_ns = taken_ns;
    free(children.pids);
    return status;
}
