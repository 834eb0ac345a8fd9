/* A descriptor that a host can poll(). */
#ifndef BP_PLATFORM_WAKE_H
#define BP_PLATFORM_WAKE_H

#include <bugpack/error.h>

/* Both are the same where the system has one descriptor for it (eventfd). */
typedef struct bp_wake {
    int fd;       /* readable exactly while it is raised */
    int raise_fd; /* what raising writes to */
} bp_wake;

/* Lowered, close-on-exec, non-blocking, and not one of the standard streams: a host that has closed
 * those would print into it. IO with the errno. */
bugpack_status bp_wake_open(bp_wake *ret_wake, bugpack_error *error);
void bp_wake_close(bp_wake *wake);

/* Raises it; to be called when it is lowered, and the other way round. One thread at a time. */
void bp_wake_raise(const bp_wake *wake);
void bp_wake_lower(const bp_wake *wake);

#endif
