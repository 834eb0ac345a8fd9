#include "probe/blocked_thread.h"

#include <errno.h>
#include <string.h>

#include "platform/linux/files.h"

/*
 * A thread that woke up meanwhile and waits in the same place again has another schedstat. Kernels
 * without it have no such file.
 */
static int read_position(const bp_blocked_thread *thread, bp_blocked_position *ret_position) {
    *ret_position = (bp_blocked_position){.runs = ""};
    (void)bp_proc_read_at(thread->threads_fd, ret_position->runs, sizeof ret_position->runs,
                          "%llu/schedstat", (unsigned long long)thread->tid);
    return bp_thread_syscall_read(thread->threads_fd, thread->tid, &ret_position->at);
}

static bool is_same_position(const bp_blocked_thread *thread) {
    bp_blocked_position now;
    return read_position(thread, &now) == 0 &&
           memcmp(&now.at, &thread->before.at, sizeof now.at) == 0 &&
           memcmp(now.runs, thread->before.runs, sizeof now.runs) == 0;
}

int bp_blocked_take(bp_blocked_thread *thread, bp_blocked_status *ret_status) {
    int result = read_position(thread, &thread->before);
    if (result != 0) {
        return result;
    }
    if (thread->before.at.place == BP_THREAD_RUNS || thread->before.at.stack_pointer == 0) {
        *ret_status =
            thread->before.at.place == BP_THREAD_RUNS ? BP_BLOCKED_RUNNING : BP_BLOCKED_NO_STACK;
        return 0;
    }
    thread->copy.stack_pointer = thread->before.at.stack_pointer;
    thread->copy.program_counter = thread->before.at.program_counter;
    thread->copy.register_count = 0;
    thread->copy.pid = thread->pid;
    result = bp_thread_copy_stack(&thread->copy, thread->pid);
    if (!is_same_position(thread)) {
        return EAGAIN;
    }
    *ret_status = BP_BLOCKED_OK;
    return result;
}

bool bp_blocked_is_unmoved(const bp_blocked_thread *thread) {
    return !thread->copy.has_read_more || is_same_position(thread);
}
