/*
 * Descriptors that are held so that a report can be taken by a process that has run out of them:
 * released for the report, and filled again after it.
 */
#ifndef BP_PLATFORM_FD_RESERVE_H
#define BP_PLATFORM_FD_RESERVE_H

#include <stdbool.h>

#include "base/fd_mark.h"

/* A report opens its directory, the zip, a copy of each ring and a few files at a time. */
enum { BP_FD_RESERVE_COUNT = 16 };

/* All of them are of one pipe, whose inode distinguishes them from descriptors of the host. */
typedef struct bp_fd_reserve {
    bool is_held;
    int had_count;                /* how many it had, which a host near its limit has to spare */
    int fds[BP_FD_RESERVE_COUNT]; /* -1 where none was left */
    bp_fd_mark mark;
} bp_fd_reserve;

/* Takes as many as there are, but of those that the host never gave before, none of the last
 * BP_FD_RESERVE_COUNT. Not held before. */
void bp_fd_reserve_take(bp_fd_reserve *reserve);

/* Closes those that the host has not closed. No-op if it is not held. */
void bp_fd_reserve_release(bp_fd_reserve *reserve);

#endif
