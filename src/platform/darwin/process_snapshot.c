/*
 * Another process through libproc, which asks for the same user and not for a task port.
 */
#include <errno.h>
#include <stdlib.h>

#include <mach/mach_time.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/darwin/process_private.h"

/*
 * The flavor that lists thread ids, which PROC_PIDTHREADID64INFO takes, is in the kernel's sources
 * (xnu/bsd/sys/proc_info_private.h) and not in the public header. A kernel without it lists
 * handles: addresses that identify a thread until it ends, for PROC_PIDTHREADINFO.
 */
enum { LIST_THREAD_IDS = 28 };

/* More threads than a Mac can have; the bound is for a kernel that says nonsense. */
static const size_t thread_max = (size_t)1 << 20;

typedef struct id_list {
    uint64_t *ids;
    size_t count;
} id_list;

static bool is_unknown_flavor(int system_errno) {
    return system_errno == EINVAL || system_errno == ENOSYS || system_errno == ENOTSUP;
}

/* The bytes that were listed, or -1 with errno. */
static int list_once(bp_process *process, uint64_t *ids, size_t room) {
    int bytes = (int)(room * sizeof *ids);
    if (!process->lists_handles) {
        int count = bp_darwin_pidlist(process->pid, LIST_THREAD_IDS, ids, bytes);
        if (count >= 0 || !is_unknown_flavor(errno)) {
            return count;
        }
        process->lists_handles = true;
    }
    return bp_darwin_pidlist(process->pid, PROC_PIDLISTTHREADS, ids, bytes);
}

/* A list that fills its buffer may be cut, so it is read again into a larger one. */
static bugpack_status list_threads(bp_process *process, size_t expected, id_list *list,
                                   bugpack_error *error) {
    for (size_t room = expected + 32; room <= thread_max; room *= 2) {
        uint64_t *ids = realloc(list->ids, room * sizeof *ids);
        if (ids == NULL) {
            return bp_fail_memory(error, "list the threads of a process");
        }
        list->ids = ids;
        int bytes = list_once(process, ids, room);
        if (bytes < 0) {
            return bp_darwin_fail_call(process,
                                       process->lists_handles
                                           ? "proc_pidinfo(PROC_PIDLISTTHREADS)"
                                           : "proc_pidinfo(PROC_PIDLISTTHREADIDS)",
                                       error);
        }
        list->count = (size_t)bytes / sizeof *ids;
        if (list->count < room) {
            return BUGPACK_OK;
        }
    }
    return bp_fail(error, BUGPACK_ERR_LIMIT, "process %d has more than %zu threads",
                   (int)process->pid, thread_max);
}

static bugpack_status read_thread(const bp_process *process, uint64_t id, bool with_names,
                                  bp_task_snapshot *snapshot, bugpack_error *error) {
    struct proc_threadinfo info;
    int flavor = process->lists_handles ? PROC_PIDTHREADINFO : PROC_PIDTHREADID64INFO;
    if (bp_darwin_pidinfo(process->pid, flavor, id, &info, (int)sizeof info)) {
        bp_thread_counters *thread = &snapshot->threads[snapshot->thread_count++];
        thread->tid = id;
        thread->cpu = bp_darwin_add(info.pth_user_time, info.pth_system_time);
        if (with_names) {
            bp_darwin_copy_name(thread->name, info.pth_name, sizeof info.pth_name);
        }
        return BUGPACK_OK;
    }
    if (errno == ESRCH) {
        snapshot->vanished_count++; /* the thread, or with it the process: that is looked at last */
        return BUGPACK_OK;
    }
    return bp_darwin_fail_call(process,
                               process->lists_handles ? "proc_pidinfo(PROC_PIDTHREADINFO)"
                                                      : "proc_pidinfo(PROC_PIDTHREADID64INFO)",
                               error);
}

static bugpack_status read_threads(bp_process *process, size_t expected, bool with_names,
                                   bp_task_snapshot *snapshot, bugpack_error *error) {
    id_list list = {0};
    bugpack_status status = list_threads(process, expected, &list, error);
    if (status == BUGPACK_OK) {
        snapshot->threads = calloc(list.count > 0 ? list.count : 1, sizeof *snapshot->threads);
        if (snapshot->threads == NULL) {
            status = bp_fail_memory(error, "read the threads of a process");
        }
    }
    for (size_t i = 0; status == BUGPACK_OK && i < list.count; i++) {
        /* A thread that is being created has no handle yet. */
        if (list.ids[i] != 0) {
            status = read_thread(process, list.ids[i], with_names, snapshot, error);
        }
    }
    free(list.ids);
    return status;
}

static bugpack_status snapshot_other(bp_process *process, bool with_names,
                                     bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    struct proc_taskinfo info;
    uint64_t taken_ns = bp_clock_monotonic_ns();
    if (!bp_darwin_pidinfo(process->pid, PROC_PIDTASKINFO, 0, &info, (int)sizeof info)) {
        return bp_darwin_fail_call(process, "proc_pidinfo(PROC_PIDTASKINFO)", error);
    }
    bp_darwin_counters counters = {.taken_ns = taken_ns,
                                   .user_ticks = info.pti_total_user,
                                   .system_ticks = info.pti_total_system,
                                   .resident_bytes = info.pti_resident_size,
                                   .virtual_bytes = info.pti_virtual_size};
    bp_task_snapshot snapshot = bp_darwin_snapshot(&counters, process->kernel_tick);
    size_t expected = info.pti_threadnum > 0 ? (size_t)info.pti_threadnum : 0;
    bugpack_status status = read_threads(process, expected, with_names, &snapshot, error);
    if (status == BUGPACK_OK) {
        struct proc_bsdinfo identity;
        status = bp_darwin_check_same(process, &identity, error);
    }
    if (status != BUGPACK_OK) {
        bp_task_snapshot_release(&snapshot);
        return status;
    }
    *ret_snapshot = snapshot;
    return BUGPACK_OK;
}

bool bp_process_program(const bp_process *process, bp_task_program *ret_program) {
    (void)process;
    (void)ret_program;
    return false;
}

bool bp_process_uptime(bp_process *process, uint64_t *ret_uptime_ns) {
    bp_darwin_uptime *uptime = &process->uptime;
    if (!uptime->is_known) {
        return false;
    }
    uint64_t now_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), process->clock_tick);
    uint64_t since_ns = now_ns > uptime->opened_ns ? now_ns - uptime->opened_ns : 0;
    uint64_t lived_ns = bp_darwin_add(uptime->age_ns, since_ns);
    if (lived_ns > uptime->reported_ns) {
        uptime->reported_ns = lived_ns;
    }
    *ret_uptime_ns = uptime->reported_ns;
    return true;
}

bugpack_status bp_process_snapshot(bp_process *process, bool with_names,
                                   bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    bp_task_snapshot snapshot = {0};
    bugpack_status status = process->is_own
                                ? bp_darwin_snapshot_own(process, with_names, &snapshot, error)
                                : snapshot_other(process, with_names, &snapshot, error);
    if (status == BUGPACK_OK) {
        snapshot.has_uptime = bp_process_uptime(process, &snapshot.uptime_ns);
        *ret_snapshot = snapshot;
    }
    return status;
}

/* Nothing is remembered: a name comes with the counters. */
void bp_process_reread_names(bp_process *process) {
    (void)process;
}

/* The kernel counts those of whole processes (proc_taskinfo). */
bugpack_status bp_process_read_switches(const bp_process *process, bp_task_snapshot *snapshot,
                                        bugpack_error *error) {
    (void)process;
    (void)snapshot;
    (void)error;
    return BUGPACK_OK;
}

/* What is left of it has no counters (proc_pidinfo(3) fails with ESRCH). */
bugpack_status bp_process_snapshot_ended(bp_process *process, bool with_names,
                                         bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    (void)with_names;
    (void)ret_snapshot;
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d has ended", (int)process->pid);
}
