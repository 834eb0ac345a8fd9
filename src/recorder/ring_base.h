/*
 * The directory that holds the session directories.
 */
#ifndef BP_RECORDER_RING_BASE_H
#define BP_RECORDER_RING_BASE_H

#include <stdbool.h>

#include <bugpack/error.h>

/* What is known of it. */
typedef struct bp_ring_base {
    const char *path; /* absolute, borrowed */
    bool is_chosen;   /* by us: the directory above it is examined as well */
    bool is_common;   /* its file system has to be in memory, and half of it has to stay free */
} bp_ring_base;

/*
 * Opens it. It must be a directory, and not a link, of this user alone. What is above a chosen one
 * must belong to this user or to root, and nobody else may replace its entries. With `create` a
 * missing one is made, with mode 0700. Errors: IO, DENIED; the errno is ENOENT if it is missing and
 * EPERM if it is another user's.
 */
bugpack_status bp_ring_base_open(const bp_ring_base *base, bool create, int *ret_fd,
                                 bugpack_error *error);

#endif
