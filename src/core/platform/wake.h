/* Descriptors that bugpack holds in a host: one that it can poll(), and a reserve for reports. */
#ifndef BP_PLATFORM_WAKE_H
#define BP_PLATFORM_WAKE_H

#include <stdbool.h>

#include <bugpack/error.h>

#include "base/fd_mark.h"

/* A pipe, because its inode identifies it; all eventfds share one. */
typedef struct bp_wake {
    int fd;          /* readable exactly while it is raised */
    int raise_fd;    /* what raising writes to */
    bp_fd_mark mark; /* of both */
} bp_wake;

/* Lowered, close-on-exec, non-blocking, and not one of the standard streams: a host that has closed
 * those would print into it. IO with the errno. */
bugpack_status bp_wake_open(bp_wake *ret_wake, bugpack_error *error);
void bp_wake_close(bp_wake *wake);

/* True if both ends are still its own. If not, all that follows does nothing. */
bool bp_wake_is_open(const bp_wake *wake);

/* Raises it; to be called when it is lowered, and the other way round. One thread at a time. */
void bp_wake_raise(const bp_wake *wake);
void bp_wake_lower(const bp_wake *wake);

/*
 * Descriptors that are held so that a report can be taken by a process that has run out of them:
 * released for the report, and filled again after it. A report opens its directory, the zip, a copy
 * of each ring and a few files at a time.
 */
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
