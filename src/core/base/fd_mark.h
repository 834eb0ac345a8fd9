/*
 * Which file a descriptor is of. A host may close descriptors that it does not own, and get their
 * numbers for files of its own; whoever holds a descriptor for long checks it before each use.
 *
 * A mark is device and inode. It identifies regular files, directories, pipes and files under
 * /proc, but not eventfd, timerfd and the like, which share one inode.
 */
#ifndef BP_BASE_FD_MARK_H
#define BP_BASE_FD_MARK_H

#include <stdbool.h>
#include <stdint.h>

typedef struct bp_fd_mark {
    uint64_t device, inode;
} bp_fd_mark;

/* All zero for -1, and where fstat(2) fails. */
bp_fd_mark bp_fd_mark_of(int fd);

/* True if `fd` still has that mark. False for -1. Leaves errno alone. */
bool bp_fd_is_ours(int fd, bp_fd_mark mark);

/* Closes `fd` if it still has that mark. Leaves errno alone. */
void bp_fd_close_ours(int fd, bp_fd_mark mark);

#endif
