/*
 * Nothing on macOS holds a pid: there is no descriptor for it without a task port, which only
 * debuggers get. So each reading of another process ends with a check of its start time: as long as
 * that is unchanged, it has been the same process all the while.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <libproc.h>
#include <mach/mach.h>
#include <mach/mach_error.h>
#include <mach/mach_time.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/child_end.h"
#include "platform/darwin/process_private.h"

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

static bugpack_status fail_ended(const bp_process *process, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %d has ended", (int)process->pid);
}

bugpack_status bp_darwin_fail_call(const bp_process *process, const char *call,
                                   bugpack_error *error) {
    if (errno == ESRCH) {
        return fail_ended(process, error);
    }
    return bp_fail_process_errno(error, errno, "cannot look at process %d with %s",
                                 (int)process->pid, call);
}

static bool has_ended(const struct proc_bsdinfo *info) {
    return bp_darwin_state(info->pbi_status, 0) == 'Z' || (info->pbi_flags & PROC_FLAG_INEXIT) != 0;
}

bugpack_status bp_darwin_check_same(const bp_process *process, struct proc_bsdinfo *ret_info,
                                    bugpack_error *error) {
    struct proc_bsdinfo info;
    if (!bp_darwin_pidinfo(process->pid, PROC_PIDTBSDINFO, 0, &info, (int)sizeof info)) {
        return bp_darwin_fail_call(process, "proc_pidinfo(PROC_PIDTBSDINFO)", error);
    }
    bool is_same = !process->has_start || (info.pbi_start_tvsec == process->start.seconds &&
                                           info.pbi_start_tvusec == process->start.microseconds);
    if (!is_same || (has_ended(&info) && !process->is_own)) {
        return fail_ended(process, error);
    }
    *ret_info = info;
    return BUGPACK_OK;
}

/*
 * A program for Intel under Rosetta reads clocks in nanoseconds, and mach_timebase_info says so,
 * but the kernel's values stay in ticks of the real clock (psutil pull request 2728, htop issue
 * 765). hw.tbfrequency gives the real clock in both cases.
 */
static bugpack_status read_ticks(bp_process *process, bugpack_error *error) {
    mach_timebase_info_data_t timebase = {0};
    kern_return_t result = mach_timebase_info(&timebase);
    if (result != KERN_SUCCESS) {
        return bp_fail(error, BUGPACK_ERR_IO, "mach_timebase_info failed: %s (%d)",
                       mach_error_string(result), (int)result);
    }
    process->clock_tick = (bp_darwin_tick){.numer = timebase.numer, .denom = timebase.denom};
    process->kernel_tick = process->clock_tick;
    uint64_t hertz = 0;
    size_t hertz_bytes = sizeof hertz;
    if (sysctlbyname("hw.tbfrequency", &hertz, &hertz_bytes, NULL, 0) == 0 &&
        hertz_bytes == sizeof hertz) {
        (void)bp_darwin_tick_of(hertz, &process->kernel_tick);
    }
    return BUGPACK_OK;
}

static uint64_t asleep_since_boot_ns(const bp_process *process, uint64_t awake_ns) {
    uint64_t since_boot_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), process->clock_tick);
    return since_boot_ns > awake_ns ? since_boot_ns - awake_ns : 0;
}

static void begin_uptime(bp_process *process) {
    uint64_t awake_ns = bp_darwin_ticks_to_ns(mach_absolute_time(), process->clock_tick);
    bp_darwin_age age = {.now_wall_ns = bp_clock_wall_ns()};
    bool seconds_fit = process->start.seconds < UINT64_MAX / BP_NS_PER_SEC - 1;
    age.started_wall_ns = seconds_fit ? process->start.seconds * BP_NS_PER_SEC +
                                            process->start.microseconds % 1000000 * 1000
                                      : UINT64_MAX;
    struct rusage_info_v0 usage = {0};
    if (proc_pid_rusage(process->pid, RUSAGE_INFO_V0, (rusage_info_t *)&usage) == 0 &&
        usage.ri_proc_start_abstime > 0) {
        uint64_t start_ns =
            bp_darwin_ticks_to_ns(usage.ri_proc_start_abstime, process->kernel_tick);
        age.has_awake = start_ns <= awake_ns;
        age.awake_ns = age.has_awake ? awake_ns - start_ns : 0;
        age.asleep_since_boot_ns = asleep_since_boot_ns(process, awake_ns);
    }
    process->uptime = (bp_darwin_uptime){
        .is_known = true,
        .age_ns = bp_darwin_age_ns(&age),
        .opened_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), process->clock_tick)};
}

static void take_identity(bp_process *process, const struct proc_bsdinfo *info) {
    const char *name = info->pbi_name;
    size_t capacity = sizeof info->pbi_name;
    if (name[0] == '\0') {
        name = info->pbi_comm; /* a shorter one, which every process has */
        capacity = sizeof info->pbi_comm;
    }
    bp_darwin_copy_name(process->name, name, capacity);
    process->has_start = true;
    process->start =
        (bp_darwin_start){.seconds = info->pbi_start_tvsec, .microseconds = info->pbi_start_tvusec};
    begin_uptime(process);
}

/* Learns which process this is. Our own is sampled also where that cannot be had. */
static bugpack_status identify(bp_process *process, bugpack_error *error) {
    struct proc_bsdinfo info;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_darwin_check_same(process, &info, &detail);
    if (status == BUGPACK_OK) {
        take_identity(process, &info);
    } else if (status == BUGPACK_ERR_NO_PROCESS && !process->is_own) {
        return bp_fail(error, status, "no process with id %d", (int)process->pid);
    } else if (!process->is_own && error != NULL) {
        *error = detail;
    }
    return process->is_own ? BUGPACK_OK : status;
}

bugpack_status bp_process_open(pid_t pid, bool for_tree, bp_process **ret_process,
                               bugpack_error *error) {
    (void)for_tree;
    if (pid < 0) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "no process with id %d", (int)pid);
    }
    bp_process *process = calloc(1, sizeof *process);
    if (process == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    process->pid = pid == 0 ? getpid() : pid;
    process->is_own = process->pid == getpid();
    bugpack_status status = read_ticks(process, error);
    if (status == BUGPACK_OK) {
        status = identify(process, error);
    }
    if (status != BUGPACK_OK) {
        free(process);
        return status;
    }
    *ret_process = process;
    return BUGPACK_OK;
}

bugpack_status bp_process_clone(const bp_process *process, bp_process **ret_clone,
                                bugpack_error *error) {
    if (!process->is_own) {
        struct proc_bsdinfo info;
        bugpack_status status = bp_darwin_check_same(process, &info, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    }
    bp_process *clone = calloc(1, sizeof *clone);
    if (clone == NULL) {
        return bp_fail_memory(error, "hold a process twice");
    }
    /* Member by member: another thread may be changing what changes with each snapshot. */
    clone->pid = process->pid;
    clone->is_own = process->is_own;
    memcpy(clone->name, process->name, sizeof clone->name);
    clone->has_start = process->has_start;
    clone->start = process->start;
    clone->clock_tick = process->clock_tick;
    clone->kernel_tick = process->kernel_tick;
    clone->uptime.is_known = process->uptime.is_known;
    clone->uptime.age_ns = process->uptime.age_ns;
    clone->uptime.opened_ns = process->uptime.opened_ns;
    *ret_clone = clone;
    return BUGPACK_OK;
}

void bp_process_close(bp_process *process) {
    free(process);
}

pid_t bp_task_pid(const bp_task *task) {
    return task->process->pid;
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", task->process->name);
}

/* Another process through libproc, which asks for the same user and not for a task port. */

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
static int list_threads_once(bp_process *process, uint64_t *ids, size_t room) {
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
        int bytes = list_threads_once(process, ids, room);
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

bugpack_status bp_task_read_totals(bp_task *task, bp_task_totals *ret_totals,
                                   bugpack_error *error) {
    (void)task;
    (void)ret_totals;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there are no totals of a process on macOS");
}

bool bp_task_program_now(bp_task *task, bp_task_program *ret_program) {
    (void)task;
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
void bp_task_reread_names(bp_task *task) {
    (void)task;
}

/* The kernel counts those of whole processes (proc_taskinfo). */
bugpack_status bp_task_read_switches(const bp_task *task, bp_task_snapshot *snapshot,
                                     bugpack_error *error) {
    (void)task;
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

/*
 * The descendants of a process. What each has used comes from proc_pid_rusage, in one answer: its
 * own time, that of the children that it waited for, and its start. It answers for a zombie, too,
 * which every other call takes for gone. The kernel adds an ended child to its parent where it is
 * reaped, also when the parent ignores SIGCHLD (reap_child_locked and proc_exit in
 * xnu/bsd/kern/kern_exit.c), in ticks.
 */

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
static int list_children_once(pid_t pid, pid_t *pids, size_t room) {
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
        count = (size_t)list_children_once(pid, pids, room) / sizeof *pids;
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

bugpack_status bp_process_read_member(const bp_process *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children) {
    bp_process *process = NULL;
    bp_tree_member member;
    bugpack_status status = bp_process_open(pid, true, &process, NULL);
    if (status == BUGPACK_OK) {
        status = read_open(process, with_names, &member, ret_snapshot);
        bp_process_close(process);
    }
    if (status == BUGPACK_ERR_NO_PROCESS && read_usage(pid, first->kernel_tick, &member)) {
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

/* The argument that makes proc_pidinfo search zombies too (proc_pidinfo in
 * xnu/bsd/kern/proc_info.c). */
enum { with_zombies = 1 };

/* Nothing tells it of a child that is to stay unreaped. */
uint64_t bp_child_cpu_ns(pid_t pid) {
    (void)pid;
    return 0;
}

/*
 * waitid drops the signal from the status of a killed child (waitid_nocancel in
 * xnu/bsd/kern/kern_exit.c; .NET found this). libproc returns the whole wait status.
 */
int bp_child_end_status(const siginfo_t *info) {
    struct proc_bsdinfo bsd;
    bool is_killed = info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED;
    if (!is_killed || info->si_status != 0) {
        return info->si_status;
    }
    int count = proc_pidinfo(info->si_pid, PROC_PIDTBSDINFO, with_zombies, &bsd, (int)sizeof bsd);
    int status = count == (int)sizeof bsd ? (int)bsd.pbi_xstatus : 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
