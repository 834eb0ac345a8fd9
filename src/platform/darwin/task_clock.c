/*
 * The clocks of a Mac, and how old a process is by them.
 */
#include <sys/sysctl.h>

#include <mach/mach.h>
#include <mach/mach_error.h>
#include <mach/mach_time.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/darwin/task_private.h"

/*
 * A program for Intel that Rosetta translates reads clocks in nanoseconds and is told so, but what
 * the kernel hands out stays in ticks of the real clock, 125/3 of that (psutil's pull request 2728
 * and htop's issue 765 found out). hw.tbfrequency speaks of the real clock in both cases.
 */
bugpack_status bp_darwin_read_ticks(bp_task *task, bugpack_error *error) {
    mach_timebase_info_data_t timebase = {0};
    kern_return_t result = mach_timebase_info(&timebase);
    if (result != KERN_SUCCESS) {
        return bp_fail(error, BUGPACK_ERR_IO, "mach_timebase_info failed: %s (%d)",
                       mach_error_string(result), (int)result);
    }
    task->clock_tick = (bp_darwin_tick){.numer = timebase.numer, .denom = timebase.denom};
    task->kernel_tick = task->clock_tick;
    uint64_t hertz = 0;
    size_t hertz_bytes = sizeof hertz;
    if (sysctlbyname("hw.tbfrequency", &hertz, &hertz_bytes, NULL, 0) == 0 &&
        hertz_bytes == sizeof hertz) {
        (void)bp_darwin_tick_of(hertz, &task->kernel_tick);
    }
    return BUGPACK_OK;
}

static uint64_t asleep_since_boot_ns(const bp_task *task, uint64_t awake_ns) {
    uint64_t since_boot_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), task->clock_tick);
    return since_boot_ns > awake_ns ? since_boot_ns - awake_ns : 0;
}

void bp_darwin_uptime_begin(bp_task *task) {
    uint64_t awake_ns = bp_darwin_ticks_to_ns(mach_absolute_time(), task->clock_tick);
    bp_darwin_age age = {.now_wall_ns = bp_clock_wall_ns()};
    bool seconds_fit = task->start.seconds < UINT64_MAX / BP_NS_PER_SEC - 1;
    age.started_wall_ns = seconds_fit ? task->start.seconds * BP_NS_PER_SEC +
                                            task->start.microseconds % 1000000 * 1000
                                      : UINT64_MAX;
    struct rusage_info_v0 usage = {0};
    if (proc_pid_rusage(task->pid, RUSAGE_INFO_V0, (rusage_info_t *)&usage) == 0 &&
        usage.ri_proc_start_abstime > 0) {
        uint64_t start_ns = bp_darwin_ticks_to_ns(usage.ri_proc_start_abstime, task->kernel_tick);
        age.has_awake = start_ns <= awake_ns;
        age.awake_ns = age.has_awake ? awake_ns - start_ns : 0;
        age.asleep_since_boot_ns = asleep_since_boot_ns(task, awake_ns);
    }
    task->uptime = (bp_darwin_uptime){
        .is_known = true,
        .age_ns = bp_darwin_age_ns(&age),
        .opened_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), task->clock_tick)};
}

void bp_darwin_uptime_read(bp_task *task, bp_task_snapshot *snapshot) {
    bp_darwin_uptime *uptime = &task->uptime;
    if (!uptime->is_known) {
        return;
    }
    uint64_t now_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), task->clock_tick);
    uint64_t since_ns = now_ns > uptime->opened_ns ? now_ns - uptime->opened_ns : 0;
    uint64_t lived_ns = bp_darwin_add(uptime->age_ns, since_ns);
    if (lived_ns > uptime->reported_ns) {
        uptime->reported_ns = lived_ns;
    }
    snapshot->has_uptime = true;
    snapshot->uptime_ns = uptime->reported_ns;
}
