/*
 * The descendants of a process.
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
#include "platform/darwin/process_private.h"

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

/* The bytes that were filled in; 0 on failure. */
static int list_once(pid_t pid, pid_t *pids, size_t room) {
    int bytes = proc_listpids(PROC_PPID_ONLY, (uint32_t)pid, pids, (int)(room * sizeof *pids));
    return bytes > 0 ? bytes : 0;
}

/* Appends the children; false when memory is short. A list that fills its buffer may be cut, so it
 * is read again into a larger one. */
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
 * Handles are addresses inside a process and the same in many processes; start and pid of the
 * process make them unique. The factor is above every pid; the upper bits, which overflow, repeat
 * after four years.
 */
static void add_births(const bp_process *process, bp_task_snapshot *snapshot) {
    uint64_t start_us = process->start.seconds * 1000000 + process->start.microseconds;
    for (size_t i = 0; process->lists_handles && i < snapshot->thread_count; i++) {
        snapshot->threads[i].birth = start_us * 131072 + (uint64_t)process->pid;
    }
}

/* Threads and memory of an open process, and what it has used, read while it is surely that one. */
static bugpack_status read_open(bp_process *process, bool with_names, bp_tree_member *ret_member,
                                bp_task_snapshot *ret_snapshot) {
    if (!read_usage(process->pid, process->kernel_tick, ret_member)) {
        return bp_darwin_fail_call(process, "proc_pid_rusage", NULL);
    }
    bugpack_status status = bp_process_snapshot(process, with_names, ret_snapshot, NULL);
    if (status == BUGPACK_OK) {
        add_births(process, ret_snapshot);
    }
    return status;
}

bugpack_status bp_process_read_member(void *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children) {
    bp_process *process = NULL;
    bp_tree_member member;
    bugpack_status status = bp_process_open(pid, true, &process, NULL);
    if (status == BUGPACK_OK) {
        status = read_open(process, with_names, &member, ret_snapshot);
        bp_process_close(process);
    }
    if (status == BUGPACK_ERR_NO_PROCESS &&
        read_usage(pid, ((const bp_process *)first)->kernel_tick, &member)) {
        status = BUGPACK_OK; /* it has ended, and its parent has not waited for it yet */
    }
    if (status == BUGPACK_OK) {
        *ret_member = member;
        status = list_children(pid, children) ? BUGPACK_OK : BUGPACK_ERR_NO_MEMORY;
    }
    return status;
}

bugpack_status bp_process_note(bp_process *process, bp_task_snapshot *snapshot,
                               bp_tree_member *ret_member, bp_pid_list *children,
                               bugpack_error *error) {
    snapshot->taken_ns = bp_clock_monotonic_ns();
    if (!read_usage(process->pid, process->kernel_tick, ret_member)) {
        return bp_darwin_fail_call(process, "proc_pid_rusage", error);
    }
    add_births(process, snapshot);
    return list_children(process->pid, children)
               ? BUGPACK_OK
               : bp_fail_memory(error, "look at the descendants of a process");
}
