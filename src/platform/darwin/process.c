/*
 * Nothing on macOS holds a pid: there is no descriptor for it without a task port, which only
 * debuggers get. So each reading of another process ends with a check of its start time: as long as
 * that is unchanged, it has been the same process all the while.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <mach/mach.h>
#include <mach/mach_error.h>
#include <mach/mach_time.h>

#include "base/clock.h"
#include "base/status.h"
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

pid_t bp_process_pid(const bp_process *process) {
    return process->pid;
}

const char *bp_process_name(const bp_process *process) {
    return process->name;
}
