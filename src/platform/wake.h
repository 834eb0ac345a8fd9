/* A descriptor that a host can poll(). */
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

/* Whether both ends are still its own. If not, all that follows does nothing. */
bool bp_wake_is_open(const bp_wake *wake);

/* Raises it; to be called when it is lowered, and the other way round. One thread at a time. */
void bp_wake_raise(const bp_wake *wake);
void bp_wake_lower(const bp_wake *wake);

/* As pipe(2); close-on-exec at once where the system can. */
int bp_wake_pipe(int ends[2]);

#endif
