/*
 * Our own process through Mach, which needs no privilege. For another one Mach wants its task port,
 * which only debuggers get.
 *
 * task_threads returns a send right for each thread and the list in memory of its own. Both must be
 * given back, so every path out of read_threads calls release_threads.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include <mach/mach.h>
#include <mach/mach_error.h>
#include <mach/mach_time.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/child_watch.h"
#include "platform/darwin/task_private.h"

bool bp_darwin_pidinfo(int flavor, void *ret_info, int bytes) {
    errno = 0;
    int count = proc_pidinfo(getpid(), flavor, 0, ret_info, bytes);
    if (count == bytes) {
        return true;
    }
    /* It says 0 for a failure, and leaves errno alone when it merely has nothing to give. */
    errno = count > 0 || errno == 0 ? EBADMSG : errno;
    return false;
}

static bugpack_status fail_call(const char *call, kern_return_t result, bugpack_error *error) {
    bool lacks_memory = result == KERN_NO_SPACE || result == KERN_RESOURCE_SHORTAGE;
    return bp_fail(error, lacks_memory ? BUGPACK_ERR_NO_MEMORY : BUGPACK_ERR_IO,
                   "%s failed: %s (%d)", call, mach_error_string(result), (int)result);
}

/*
 * A program for Intel under Rosetta reads clocks in nanoseconds, and mach_timebase_info says so,
 * but the kernel's values stay in ticks of the real clock (psutil pull request 2728, htop issue
 * 765). hw.tbfrequency gives the real clock in both cases.
 */
static bugpack_status read_ticks(bp_task *task, bugpack_error *error) {
    mach_timebase_info_data_t timebase = {0};
    kern_return_t result = mach_timebase_info(&timebase);
    if (result != KERN_SUCCESS) {
        return fail_call("mach_timebase_info", result, error);
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

static void begin_uptime(bp_task *task) {
    uint64_t awake_ns = bp_darwin_ticks_to_ns(mach_absolute_time(), task->clock_tick);
    task->opened_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), task->clock_tick);
    bp_darwin_age age = {.started_wall_ns = task->started_wall_ns,
                         .now_wall_ns = bp_clock_wall_ns()};
    struct rusage_info_v0 usage = {0};
    if (proc_pid_rusage(getpid(), RUSAGE_INFO_V0, (rusage_info_t *)&usage) == 0 &&
        usage.ri_proc_start_abstime > 0) {
        uint64_t start_ns = bp_darwin_ticks_to_ns(usage.ri_proc_start_abstime, task->kernel_tick);
        age.has_awake = start_ns <= awake_ns;
        age.awake_ns = age.has_awake ? awake_ns - start_ns : 0;
        age.asleep_since_boot_ns = task->opened_ns > awake_ns ? task->opened_ns - awake_ns : 0;
    }
    task->age_ns = bp_darwin_age_ns(&age);
}

static void identify(bp_task *task) {
    struct proc_bsdinfo info;
    if (!bp_darwin_pidinfo(PROC_PIDTBSDINFO, &info, (int)sizeof info) ||
        info.pbi_start_tvsec >= UINT64_MAX / BP_NS_PER_SEC - 1) {
        return; /* a sandbox hides even that; the counters are to be had without it */
    }
    if (info.pbi_name[0] != '\0') {
        bp_darwin_copy_name(task->name, info.pbi_name, sizeof info.pbi_name);
    } else { /* a shorter one, which every process has */
        bp_darwin_copy_name(task->name, info.pbi_comm, sizeof info.pbi_comm);
    }
    task->started_wall_ns =
        info.pbi_start_tvsec * BP_NS_PER_SEC + info.pbi_start_tvusec % 1000000 * 1000;
    begin_uptime(task);
}

bugpack_status bp_task_open(pid_t pid, bool with_descendants, bp_task **ret_task,
                            bugpack_error *error) {
    if (with_descendants) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "on macOS a process can only sample itself: its descendants need Linux");
    }
    if (pid != 0 && pid != getpid()) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "on macOS a process can only sample itself: another one needs Linux");
    }
    bp_task *task = calloc(1, sizeof *task);
    if (task == NULL) {
        return bp_fail_memory(error, "open a process");
    }
    bugpack_status status = read_ticks(task, error);
    if (status != BUGPACK_OK) {
        free(task);
        return status;
    }
    identify(task);
    *ret_task = task;
    return BUGPACK_OK;
}

bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error) {
    (void)task;
    return bp_task_open(0, false, ret_clone, error);
}

void bp_task_close(bp_task *task) {
    free(task);
}

pid_t bp_task_pid(const bp_task *task) {
    (void)task;
    return getpid();
}

void bp_task_name(const bp_task *task, char *out, size_t out_bytes) {
    (void)snprintf(out, out_bytes, "%s", task->name);
}

bool bp_task_uptime(bp_task *task, uint64_t *ret_uptime_ns) {
    if (task->started_wall_ns == 0) {
        return false;
    }
    uint64_t now_ns = bp_darwin_ticks_to_ns(mach_continuous_time(), task->clock_tick);
    uint64_t since_ns = now_ns > task->opened_ns ? now_ns - task->opened_ns : 0;
    uint64_t lived_ns = bp_darwin_add(task->age_ns, since_ns);
    if (lived_ns > task->reported_ns) {
        task->reported_ns = lived_ns;
    }
    *ret_uptime_ns = task->reported_ns;
    return true;
}

/* The result of task_threads. */
typedef struct thread_list {
    thread_act_array_t ports;
    mach_msg_type_number_t count;
} thread_list;

/* Asks one thing about a thread or the task; `words` is the answer's size in the kernel's unit. */
static kern_return_t ask_thread(thread_act_t port, thread_flavor_t flavor, void *ret_info,
                                mach_msg_type_number_t words) {
    return thread_info(port, flavor, ret_info, &words);
}

static kern_return_t ask_task(task_flavor_t flavor, void *ret_info, mach_msg_type_number_t words) {
    return task_info(mach_task_self(), flavor, ret_info, &words);
}

/* pthreads are searched under their list's lock: a thread that ends meanwhile has no name. */
static void read_name(thread_act_t port, char name[64]) {
    pthread_t thread = pthread_from_mach_thread_np(port);
    if (thread == 0 || pthread_getname_np(thread, name, 64) != 0) {
        name[0] = '\0'; /* of a thread that the kernel made, or one that ends */
    }
    name[63] = '\0';
}

/* Reads one thread; false, with the call and its answer, when it cannot be asked. */
static bool read_thread(thread_act_t port, bool with_names, bp_thread_counters *thread,
                        const char **ret_call, kern_return_t *ret_result) {
    thread_basic_info_data_t basic = {0};
    thread_identifier_info_data_t identifier = {0};
    *ret_call = "thread_info(THREAD_BASIC_INFO)";
    *ret_result = ask_thread(port, THREAD_BASIC_INFO, &basic, THREAD_BASIC_INFO_COUNT);
    if (*ret_result != KERN_SUCCESS) {
        return false;
    }
    *ret_call = "thread_info(THREAD_IDENTIFIER_INFO)";
    *ret_result =
        ask_thread(port, THREAD_IDENTIFIER_INFO, &identifier, THREAD_IDENTIFIER_INFO_COUNT);
    if (*ret_result != KERN_SUCCESS) {
        return false;
    }
    /* The 64-bit id is of one thread only as long as the machine runs, so birth can stay 0. A
     * port's name may be another one in the next list. */
    *thread = (bp_thread_counters){.tid = identifier.thread_id};
    thread->cpu = bp_darwin_add(
        bp_darwin_time_value_ns(basic.user_time.seconds, basic.user_time.microseconds),
        bp_darwin_time_value_ns(basic.system_time.seconds, basic.system_time.microseconds));
    if (with_names) {
        read_name(port, thread->name);
    }
    return true;
}

/*
 * For a thread that has ended the kernel has several errors (KERN_TERMINATED,
 * KERN_INVALID_ARGUMENT, MACH_SEND_INVALID_DEST), so any error counts as an end. At least the
 * calling thread must be readable.
 */
static bugpack_status read_listed(const thread_list *list, bool with_names,
                                  bp_task_snapshot *snapshot, bugpack_error *error) {
    const char *call = "task_threads";
    kern_return_t result = KERN_FAILURE;
    for (mach_msg_type_number_t i = 0; i < list->count; i++) {
        bp_thread_counters *thread = &snapshot->threads[snapshot->thread_count];
        if (read_thread(list->ports[i], with_names, thread, &call, &result)) {
            snapshot->thread_count++;
        } else {
            snapshot->vanished_count++;
        }
    }
    return snapshot->thread_count > 0 ? BUGPACK_OK : fail_call(call, result, error);
}

static bugpack_status read_threads(bool with_names, bp_task_snapshot *snapshot,
                                   bugpack_error *error) {
    thread_list list = {0};
    kern_return_t result = task_threads(mach_task_self(), &list.ports, &list.count);
    if (result != KERN_SUCCESS) {
        return fail_call("task_threads", result, error);
    }
    bugpack_status status;
    snapshot->threads = calloc(list.count > 0 ? list.count : 1, sizeof *snapshot->threads);
    if (snapshot->threads == NULL) {
        status = bp_fail_memory(error, "list the threads of this process");
    } else {
        status = read_listed(&list, with_names, snapshot, error);
    }
    /* A failure cannot be handled, and must not stop the other releases. */
    for (mach_msg_type_number_t i = 0; i < list.count; i++) {
        (void)mach_port_deallocate(mach_task_self(), list.ports[i]);
    }
    if (list.ports != NULL) {
        (void)vm_deallocate(mach_task_self(), (vm_address_t)list.ports,
                            list.count * sizeof *list.ports);
    }
    return status;
}

/*
 * The CPU time comes from TASK_ABSOLUTETIME_INFO: running and ended threads in one answer, under
 * one lock. The basic info has ended threads only; adding running ones from a second call, as the
 * kernel's getrusage does, loses or doubles a thread that ends in between, and the sum would run
 * backwards.
 */
static bugpack_status read_task(const bp_task *task, bp_task_snapshot *ret_snapshot,
                                bugpack_error *error) {
    mach_task_basic_info_data_t basic = {0};
    task_absolutetime_info_data_t times = {0};
    uint64_t taken_ns = bp_clock_monotonic_ns();
    kern_return_t result = ask_task(TASK_ABSOLUTETIME_INFO, &times, TASK_ABSOLUTETIME_INFO_COUNT);
    if (result != KERN_SUCCESS) {
        return fail_call("task_info(TASK_ABSOLUTETIME_INFO)", result, error);
    }
    result = ask_task(MACH_TASK_BASIC_INFO, &basic, MACH_TASK_BASIC_INFO_COUNT);
    if (result != KERN_SUCCESS) {
        return fail_call("task_info(MACH_TASK_BASIC_INFO)", result, error);
    }
    /* Both are turned at once, so that one rounding is all there is. */
    uint64_t ticks = bp_darwin_add(times.total_user, times.total_system);
    *ret_snapshot =
        (bp_task_snapshot){.taken_ns = taken_ns,
                           .cpu_unit_ns = 1,
                           .process_cpu = bp_darwin_ticks_to_ns(ticks, task->kernel_tick),
                           .has_memory = basic.virtual_size > 0,
                           .rss_bytes = basic.resident_size,
                           .vm_size_bytes = basic.virtual_size};
    return BUGPACK_OK;
}

bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error) {
    bp_task_snapshot snapshot;
    bugpack_status status = read_task(task, &snapshot, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    status = read_threads(with_names, &snapshot, error);
    if (status != BUGPACK_OK) {
        bp_task_snapshot_release(&snapshot);
        return status;
    }
    snapshot.has_uptime = bp_task_uptime(task, &snapshot.uptime_ns);
    *ret_snapshot = snapshot;
    return BUGPACK_OK;
}

bugpack_status bp_task_snapshot_take_last(bp_task *task, bool with_names,
                                          bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    return bp_task_snapshot_take(task, with_names, ret_snapshot, error);
}

/* Nothing is remembered: a name comes with the counters. */
void bp_task_reread_names(bp_task *task) {
    (void)task;
}

/* The rest is of other processes only. */

bugpack_status bp_task_read_totals(bp_task *task, bp_task_totals *ret_totals,
                                   bugpack_error *error) {
    (void)task;
    (void)ret_totals;
    return bp_fail(error, BUGPACK_ERR_UNSUPPORTED, "there are no totals of a process on macOS");
}

bp_child_watch *bp_child_watch_new(bp_task *task) {
    (void)task;
    return NULL;
}

bool bp_child_watch_look(bp_child_watch *watch) {
    (void)watch;
    return false;
}

bool bp_child_watch_count(const bp_child_watch *watch, uint64_t *ret_count) {
    (void)watch;
    *ret_count = 0;
    return false;
}

bp_children bp_child_watch_result(const bp_child_watch *watch) {
    (void)watch;
    return (bp_children){.look_count = 0};
}

void bp_child_watch_free(bp_child_watch *watch) {
    (void)watch;
}

bool bp_task_program_now(bp_task *task, bp_task_program *ret_program) {
    (void)task;
    (void)ret_program;
    return false;
}

bugpack_status bp_task_read_switches(const bp_task *task, bp_task_snapshot *snapshot,
                                     bugpack_error *error) {
    (void)task;
    (void)snapshot;
    (void)error;
    return BUGPACK_OK;
}
