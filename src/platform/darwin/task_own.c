/*
 * Our own process through Mach, which needs no privilege.
 *
 * task_threads returns a send right for each thread and the list in memory of its own. Both must be
 * given back, so every path out of read_threads calls release_threads.
 */
#include <pthread.h>
#include <stdlib.h>

#include <mach/mach.h>
#include <mach/mach_error.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/darwin/process_private.h"

/* What task_threads gave. */
typedef struct thread_list {
    thread_act_array_t ports;
    mach_msg_type_number_t count;
} thread_list;

/* A failure cannot be handled, and must not stop the other releases. */
static void release_threads(const thread_list *list) {
    for (mach_msg_type_number_t i = 0; i < list->count; i++) {
        (void)mach_port_deallocate(mach_task_self(), list->ports[i]);
    }
    if (list->ports != NULL) {
        (void)vm_deallocate(mach_task_self(), (vm_address_t)list->ports,
                            list->count * sizeof *list->ports);
    }
}

static bugpack_status fail_call(const char *call, kern_return_t result, bugpack_error *error) {
    bool lacks_memory = result == KERN_NO_SPACE || result == KERN_RESOURCE_SHORTAGE;
    return bp_fail(error, lacks_memory ? BUGPACK_ERR_NO_MEMORY : BUGPACK_ERR_IO,
                   "%s failed: %s (%d)", call, mach_error_string(result), (int)result);
}

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
    release_threads(&list);
    return status;
}

/*
 * The CPU time comes from TASK_ABSOLUTETIME_INFO: running and ended threads in one answer, under
 * one lock. The basic info has ended threads only; adding running ones from a second call, as the
 * kernel's getrusage does, loses or doubles a thread that ends in between, and the sum would run
 * backwards.
 */
static bugpack_status read_task(bp_darwin_counters *ret_counters, bugpack_error *error) {
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
    *ret_counters = (bp_darwin_counters){.taken_ns = taken_ns,
                                         .user_ticks = times.total_user,
                                         .system_ticks = times.total_system,
                                         .resident_bytes = basic.resident_size,
                                         .virtual_bytes = basic.virtual_size};
    return BUGPACK_OK;
}

bugpack_status bp_darwin_snapshot_own(const bp_process *process, bool with_names,
                                      bp_task_snapshot *ret_snapshot, bugpack_error *error) {
    bp_darwin_counters counters;
    bugpack_status status = read_task(&counters, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    bp_task_snapshot snapshot = bp_darwin_snapshot(&counters, process->kernel_tick);
    status = read_threads(with_names, &snapshot, error);
    if (status != BUGPACK_OK) {
        bp_task_snapshot_release(&snapshot);
        return status;
    }
    *ret_snapshot = snapshot;
    return BUGPACK_OK;
}
