/*
 * On which descriptor a thread waits in its system call. Pure.
 */
#ifndef BP_PLATFORM_LINUX_FD_WAIT_H
#define BP_PLATFORM_LINUX_FD_WAIT_H

#include "platform/linux/syscall_name.h"
#include "platform/linux/thread_syscall.h"

typedef struct bp_fd_wait {
    uint32_t fd;
    bool has_limit; /* the call is one that may have a limit of time; else it is not known */
    bool is_timed;  /* it has one */
} bp_fd_wait;

/* Copies memory of the process, all of it or false. */
typedef bool bp_fd_wait_reader(void *context, uint64_t address, void *out, size_t bytes);

/* Whether this call waits on descriptors: else no memory need be read. */
bool bp_fd_wait_is_possible(bp_syscall_arch arch, const bp_thread_syscall *syscall);

/*
 * The only descriptor on which a call of read(2), write(2), recv(2), send(2), accept(2) and their
 * like waits, or one of poll(2) and select(2). False where it waits on several or on none, and
 * where it is not known.
 */
bool bp_fd_wait_find(bp_syscall_arch arch, const bp_thread_syscall *syscall,
                     bp_fd_wait_reader *read, void *context, bp_fd_wait *ret_wait);

#endif
