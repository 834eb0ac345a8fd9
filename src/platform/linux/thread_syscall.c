#include "platform/linux/thread_syscall.h"

#include <errno.h>

#include "platform/linux/files.h"

int bp_thread_syscall_read(int threads_fd, uint64_t tid, bp_thread_syscall *ret_syscall) {
    char text[256]; /* a line has at most 175 bytes */
    ssize_t length =
        bp_proc_read_at(threads_fd, text, sizeof text, "%llu/syscall", (unsigned long long)tid);
    if (length < 0) {
        return errno;
    }
    return bp_thread_syscall_parse(text, (size_t)length, ret_syscall) ? 0 : EBADMSG;
}
