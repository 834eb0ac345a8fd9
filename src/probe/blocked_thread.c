#include "probe/blocked_thread.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>

#include "platform/linux/files.h"
#include "probe/remote_memory.h"

/*
 * A thread that woke up meanwhile and waits in the same place again has another schedstat. Kernels
 * without it have no such file.
 */
static int read_position(const bp_blocked_thread *thread, bp_blocked_position *ret_position) {
    char path[40];
    *ret_position = (bp_blocked_position){.runs = ""};
    (void)snprintf(path, sizeof path, "%llu/schedstat", (unsigned long long)thread->tid);
    (void)bp_proc_read_small(thread->threads_fd, path, ret_position->runs,
                             sizeof ret_position->runs);
    return bp_thread_syscall_read(thread->threads_fd, thread->tid, &ret_position->at);
}

static bool is_same_position(const bp_blocked_thread *thread) {
    bp_blocked_position now;
    return read_position(thread, &now) == 0 &&
           memcmp(&now.at, &thread->before.at, sizeof now.at) == 0 &&
           memcmp(now.runs, thread->before.runs, sizeof now.runs) == 0;
}

/* Page by page: where the first page that is not mapped ends it, what is before is read. */
static size_t copy_stack(const bp_blocked_thread *thread) {
    enum { page_bytes = 4096, page_max = BP_BLOCKED_STACK_BYTES / page_bytes };
    struct iovec theirs[page_max];
    const struct iovec ours = {thread->stack, BP_BLOCKED_STACK_BYTES};
    uint64_t at = thread->before.at.stack_pointer;
    size_t left_bytes = BP_BLOCKED_STACK_BYTES;
    size_t count = 0;
    for (; count < page_max && left_bytes > 0 && at <= UINT64_MAX - page_bytes; count++) {
        size_t bytes = page_bytes - at % page_bytes;
        bytes = bytes < left_bytes ? bytes : left_bytes;
        theirs[count] = (struct iovec){(void *)(uintptr_t)at, bytes};
        at += bytes;
        left_bytes -= bytes;
    }
    ssize_t copied = process_vm_readv(thread->pid, &ours, 1, theirs, count, 0);
    return copied < 0 ? 0 : (size_t)copied;
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
    thread->has_read_more = false;
    errno = 0;
    thread->stack_bytes = copy_stack(thread);
    result = thread->stack_bytes == 0 ? errno : 0;
    if (!is_same_position(thread)) {
        return EAGAIN;
    }
    *ret_status = BP_BLOCKED_OK;
    return result;
}

bool bp_blocked_read_word(bp_blocked_thread *thread, uint64_t address, uint64_t *ret_word) {
    uint64_t offset = address - thread->before.at.stack_pointer;
    if (address >= thread->before.at.stack_pointer && thread->stack_bytes >= sizeof *ret_word &&
        offset <= thread->stack_bytes - sizeof *ret_word) {
        memcpy(ret_word, thread->stack + offset, sizeof *ret_word);
        return true;
    }
    thread->has_read_more = true;
    return bp_remote_read_one(thread->pid, address, ret_word, sizeof *ret_word) == 0;
}

bool bp_blocked_is_unmoved(const bp_blocked_thread *thread) {
    return !thread->has_read_more || is_same_position(thread);
}
