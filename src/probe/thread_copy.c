#include "probe/thread_copy.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "probe/remote_memory.h"

/* Page by page: where the first page that is not mapped ends it, what is before is read. */
int bp_thread_copy_stack(bp_thread_copy *copy, pid_t pid) {
    enum { page_bytes = 4096, page_max = BP_STACK_COPY_BYTES / page_bytes };
    struct iovec theirs[page_max];
    const struct iovec ours = {copy->stack, BP_STACK_COPY_BYTES};
    uint64_t at = copy->stack_pointer;
    size_t left_bytes = BP_STACK_COPY_BYTES;
    size_t count = 0;
    for (; count < page_max && left_bytes > 0 && at <= UINT64_MAX - page_bytes; count++) {
        size_t bytes = page_bytes - at % page_bytes;
        bytes = bytes < left_bytes ? bytes : left_bytes;
        theirs[count] = (struct iovec){(void *)(uintptr_t)at, bytes};
        at += bytes;
        left_bytes -= bytes;
    }
    ssize_t copied = process_vm_readv(pid, &ours, 1, theirs, count, 0);
    copy->stack_bytes = copied < 0 ? 0 : (size_t)copied;
    copy->has_read_more = false;
    return copied < 0 ? errno : 0;
}

bool bp_thread_copy_read_word(bp_thread_copy *copy, uint64_t address, uint64_t *ret_word) {
    uint64_t offset = address - copy->stack_pointer;
    if (address >= copy->stack_pointer && copy->stack_bytes >= sizeof *ret_word &&
        offset <= copy->stack_bytes - sizeof *ret_word) {
        memcpy(ret_word, copy->stack + offset, sizeof *ret_word);
        return true;
    }
    copy->has_read_more = true;
    return copy->pid != 0 &&
           bp_remote_read_one(copy->pid, address, ret_word, sizeof *ret_word) == 0;
}
