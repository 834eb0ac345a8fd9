/*
 * The locks of files that the kernel lists, in /proc/locks and in fdinfo. Pure.
 */
#ifndef BP_PLATFORM_LINUX_FILE_LOCKS_H
#define BP_PLATFORM_LINUX_FILE_LOCKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "platform/linux/thread_wait.h"

typedef enum bp_file_lock_kind {
    BP_FILE_LOCK_FLOCK, /* flock(2) */
    BP_FILE_LOCK_POSIX, /* fcntl(2), F_SETLK */
    BP_FILE_LOCK_OFD,   /* fcntl(2), F_OFD_SETLK */
    BP_FILE_LOCK_LEASE,
    BP_FILE_LOCK_KIND_COUNT
} bp_file_lock_kind;

/* "flock", "posix", "ofd", "lease". */
const char *bp_file_lock_kind_name(bp_file_lock_kind kind);

typedef struct bp_file_lock {
    bp_file_lock_kind kind;
    bool is_wanted; /* its process waits for it */
    bool is_exclusive;
    bool is_breaking; /* a lease that another process has asked to be given up */
    int64_t pid;      /* that took it, -1 of a kind that belongs to no process; 0: not visible */
    uint64_t major, minor, inode;
} bp_file_lock;

/* Parses a line of /proc/locks (proc_locks(5)), without its newline, or one of fdinfo behind
 * "lock:". False where it is malformed or of another kind; the output is left alone. */
bool bp_file_lock_parse(const char *line, size_t line_bytes, bp_file_lock *ret_lock);

/*
 * Finds the lock in the text of /proc/locks that stands in the way of `wanted`: its kind and inode,
 * its process, and its device, which has to match only where the kind belongs to no process. Some
 * file systems have another device there than stat(2) has.
 */
bool bp_file_lock_find_holder(const char *text, size_t text_bytes, const bp_file_lock *wanted,
                              bp_file_lock *ret_holder);

/* The only lease in the text that is being broken; false for none, and for several. */
bool bp_file_lock_find_lease(const char *text, size_t text_bytes, bp_file_lock *ret_lease);

/* True if a call waits for a lock of the file of a descriptor: flock, or fcntl with F_SETLKW or
 * F_OFD_SETLKW. */
bool bp_file_lock_of_call(bp_syscall_arch arch, const bp_thread_syscall *syscall, uint32_t *ret_fd,
                          bp_file_lock_kind *ret_kind);

#endif
