#include "probe/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"
#include "platform/thread.h"
#include "probe/stack_unwind.h"
#include "probe/stop_helper.h"
#include "probe/thread_stop.h"

/* Of one thread: a processor gives it a turn in far less, and what sleeps deeper is not waited for.
 */
static const uint32_t stop_timeout_ms = 200;

struct reading {
    pid_t pid, memory_pid; /* the second has the memory: another thread if the first has ended */
    int process_fd, task_fd, memory_fd;
    bp_stack_files files;
    bp_unwinder unwinder;
    bp_stop_helper helper; /* of our own process, once it is needed */
    bool was_helper_started;
};

static bool name_thread(int thread_fd, bp_stack_thread *thread, bp_proc_stat *ret_stat) {
    char text[1024];
    ssize_t count = bp_proc_read_small(thread_fd, "stat", text, sizeof text);
    if (count <= 0 || !bp_proc_parse_stat(text, (size_t)count, ret_stat)) {
        return false;
    }
    memcpy(thread->name, ret_stat->name, sizeof thread->name);
    return true;
}

/* On a thread of its own: the kernel releases what a tracer has not let go when the tracer ends. */
struct stop {
    pid_t pid, tid;
    bp_thread_copy *copy;
    uint64_t pause_ns;
    int result;
};

static void *stop_and_copy(void *argument) {
    struct stop *stop = argument;
    bp_thread_set_name("bugpack-stop");
    stop->result =
        bp_thread_stop_copy(stop->pid, stop->tid, stop_timeout_ms, stop->copy, &stop->pause_ns);
    return NULL;
}

static void ask_helper(struct reading *reading, struct stop *stop) {
    const bp_stacks_plan *plan = reading->unwinder.plan;
    stop->result = 0;
    if (!reading->was_helper_started) {
        reading->was_helper_started = true;
        stop->result =
            bp_stop_helper_start(plan->helper_path, plan->is_helper_ptracer, &reading->helper);
    }
    if (stop->result == 0) {
        stop->result =
            bp_stop_helper_copy(&reading->helper, stop->tid, stop->copy, &stop->pause_ns);
    }
}

/* Replaces what is known of the thread without a stop; or adds to the reason why it was not. */
static void stop_thread(struct reading *reading, int thread_fd, bp_stack_thread *thread) {
    bp_unwinder *unwinder = &reading->unwinder;
    struct stop stop = {reading->memory_pid, (pid_t)thread->tid, &unwinder->blocked.copy, 0,
                        ENOMEM};
    bp_stack_thread again = {.tid = 0};
    bp_proc_stat stat;
    pthread_t tracer;
    if (reading->pid == getpid()) {
        ask_helper(reading, &stop);
    } else if (bp_thread_start(stop_and_copy, &stop, &tracer, NULL) == BUGPACK_OK) {
        (void)pthread_join(tracer, NULL);
    }
    /* While the thread is there, its id is no other's. */
    if (stop.result == 0 && name_thread(thread_fd, &again, &stat)) {
        thread->state = BP_STACK_STOPPED;
        thread->stopped_ns = stop.pause_ns;
        bp_unwind_copy(unwinder, thread);
    } else if (stop.result != 0) {
        size_t length = strlen(thread->reason);
        char message[BP_ERRNO_BYTES];
        bp_describe_errno(stop.result, message);
        (void)snprintf(thread->reason + length, sizeof thread->reason - length,
                       "; it could not be stopped: %s", message);
    }
}

static bool is_to_be_stopped(const struct reading *reading, const bp_stack_thread *thread) {
    return reading->unwinder.plan->stops_threads && thread->tid != (uint64_t)gettid() &&
           (thread->state == BP_STACK_RUNNING || thread->state == BP_STACK_MOVED ||
            (thread->state == BP_STACK_BLOCKED && reading->unwinder.lacks_register));
}

/* A thread that has ended is skipped. An errno where none can be read. */
static int add_thread(struct reading *reading, uint32_t tid) {
    bp_proc_stat stat;
    bp_stack_thread thread = {.tid = tid, .first_frame = reading->unwinder.out.frame_count};
    int fd = bp_proc_open_at(reading->task_fd, O_PATH | O_DIRECTORY, "%u", tid);
    if (fd < 0) {
        return errno == ENOENT || errno == ESRCH ? 0 : errno;
    }
    int result = 0;
    if (name_thread(fd, &thread, &stat) && !bp_proc_has_thread_ended(&stat)) {
        result = bp_unwind_thread(&reading->unwinder, &thread);
        if (result == 0 && is_to_be_stopped(reading, &thread)) {
            stop_thread(reading, fd, &thread);
        }
        if (result != ENOENT && result != ESRCH) {
            reading->unwinder.out.threads[reading->unwinder.out.thread_count++] = thread;
        }
    }
    bp_file_close(fd);
    return result == ENOENT || result == ESRCH ? 0 : result;
}

/* Our own threads, and those of others that may be read. The first errno of a refusal. */
static bugpack_status read_threads(struct reading *reading, bugpack_error *error) {
    uint32_t *tids = NULL;
    size_t count = 0;
    int first_errno = bp_proc_list_numbers(reading->task_fd, &tids, &count);
    bugpack_status status = BUGPACK_OK;
    reading->unwinder.out.threads =
        calloc(count < BP_STACKS_THREAD_MAX ? count + 1 : BP_STACKS_THREAD_MAX,
               sizeof *reading->unwinder.out.threads);
    if (first_errno != 0 || reading->unwinder.out.threads == NULL) {
        status = first_errno != 0 ? bp_fail_process_errno(error, first_errno, "cannot list threads")
                                  : bp_fail_memory(error, "read stacks");
    }
    for (size_t i = 0; status == BUGPACK_OK && i < count; i++) {
        if (reading->unwinder.out.thread_count == BP_STACKS_THREAD_MAX ||
            bp_unwinder_is_over(&reading->unwinder, reading->unwinder.plan->deadline_ns)) {
            reading->unwinder.out.passed_over_count = count - i;
            break;
        }
        int result = add_thread(reading, tids[i]);
        first_errno = first_errno == 0 ? result : first_errno;
        if (reading->unwinder.has_failed) {
            status = bp_fail_memory(error, "read stacks");
        }
    }
    free(tids);
    if (status == BUGPACK_OK && first_errno != 0 &&
        bp_stacks_count(&reading->unwinder.out, BP_STACK_UNREAD) ==
            reading->unwinder.out.thread_count) {
        status = bp_fail_process_errno(error, first_errno, "cannot read where threads are");
    }
    return status;
}

/* A first thread that has ended shows neither memory nor files; each other one does. */
static void find_living_thread(struct reading *reading) {
    int fd = bp_proc_open_living_thread(reading->task_fd, &reading->memory_pid);
    if (fd >= 0) {
        bp_file_close(reading->process_fd);
        reading->process_fd = fd;
    }
}

static bugpack_status open_process(struct reading *reading, bugpack_error *error) {
    bp_stack_thread first = {.tid = 0};
    bp_proc_stat stat;
    reading->process_fd =
        bp_proc_open_at(AT_FDCWD, O_PATH | O_DIRECTORY, "/proc/%ld", (long)reading->pid);
    if (reading->process_fd >= 0) {
        reading->task_fd = openat(reading->process_fd, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    if (reading->task_fd < 0) {
        return bp_fail_process_errno(error, errno, "cannot look at process %ld",
                                     (long)reading->pid);
    }
    if (!name_thread(reading->process_fd, &first, &stat) ||
        (reading->unwinder.plan->birth != 0 && stat.start_ticks != reading->unwinder.plan->birth)) {
        return bp_fail(error, BUGPACK_ERR_NO_PROCESS, "process %ld has ended", (long)reading->pid);
    }
    if (bp_proc_has_thread_ended(&stat)) {
        find_living_thread(reading);
    }
    reading->memory_fd = openat(reading->process_fd, "mem", O_RDONLY | O_CLOEXEC);
    return BUGPACK_OK;
}

/* Through the old memory nothing can be read after an exec (mem_rw in fs/proc/base.c). */
static bugpack_status check_program(const struct reading *reading, bugpack_error *error) {
    char byte;
    off_t at = (off_t)reading->files.items[0].facts.start;
    return reading->memory_fd >= 0 && pread(reading->memory_fd, &byte, 1, at) == 0
               ? bp_fail(error, BUGPACK_ERR_NO_PROCESS,
                         "process %ld began another program meanwhile", (long)reading->pid)
               : BUGPACK_OK;
}

static bugpack_status open_files(struct reading *reading, bugpack_error *error) {
    reading->files = (bp_stack_files){.dw = reading->unwinder.dw,
                                      .pid = reading->memory_pid,
                                      .process_fd = reading->process_fd,
                                      .is_host = reading->pid == getpid()};
    int result = bp_stack_files_open(&reading->files);
    if (result != 0) {
        return bp_fail_process_errno(error, result, "cannot read what process %ld runs",
                                     (long)reading->pid);
    }
    if (reading->files.count == 0) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "process %ld runs no program: a kernel thread, or one that has ended",
                       (long)reading->pid);
    }
    reading->unwinder.files = &reading->files;
    reading->unwinder.blocked.pid = reading->memory_pid;
    reading->unwinder.blocked.threads_fd = reading->task_fd;
    return bp_unwinder_open(&reading->unwinder, error);
}

bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error) {
    struct reading reading = {.unwinder = {.dw = bp_libdw_get(error), .plan = plan},
                              .pid = pid != 0 ? pid : getpid(),
                              .memory_pid = pid != 0 ? pid : getpid(),
                              .process_fd = -1,
                              .task_fd = -1,
                              .memory_fd = -1,
                              .helper.fd = -1};
    if (reading.unwinder.dw == NULL) {
        return BUGPACK_ERR_UNSUPPORTED;
    }
    if (!bp_unwinder_has_room()) {
        return bp_fail_memory(error, "read stacks");
    }
    bugpack_status status = open_process(&reading, error);
    if (status == BUGPACK_OK) {
        status = open_files(&reading, error);
    }
    if (status == BUGPACK_OK) {
        status = read_threads(&reading, error);
    }
    if (status == BUGPACK_OK) {
        status = check_program(&reading, error);
    }
    if (status == BUGPACK_OK) {
        reading.unwinder.out.pid = (uint64_t)reading.pid;
        reading.unwinder.out.is_of_all = plan->stops_threads;
        status = bp_unwinder_finish(&reading.unwinder) ? BUGPACK_OK
                                                       : bp_fail_memory(error, "read stacks");
    }
    bp_stack_files_close(&reading.files);
    bp_unwinder_release(&reading.unwinder);
    bp_stop_helper_end(&reading.helper);
    bp_file_close(reading.memory_fd);
    bp_file_close(reading.task_fd);
    bp_file_close(reading.process_fd);
    if (status == BUGPACK_OK) {
        *ret_stacks = reading.unwinder.out;
    } else {
        bp_stacks_release(&reading.unwinder.out);
    }
    return status;
}
