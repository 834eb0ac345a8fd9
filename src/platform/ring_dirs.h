/*
 * The directories for ring files of hosts that name none, and what a directory survives.
 */
#ifndef BP_PLATFORM_RING_DIRS_H
#define BP_PLATFORM_RING_DIRS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/session.h>

typedef struct bp_ring_dir {
    char path[PATH_MAX]; /* absolute; it may not exist yet */
    bool is_common;      /* not this user's own: in memory, and half of it has to stay free */
} bp_ring_dir;

/*
 * The next directory, in the order in which they are tried; `*cursor` begins with 0. False after
 * the last. On Linux: $XDG_RUNTIME_DIR/bugpack, /run/bugpack (for root), /dev/shm/bugpack-<uid>,
 * and bugpack in each directory of $RUNTIME_DIRECTORY. On macOS $TMPDIR/bugpack, or the same from
 * confstr(3).
 */
bool bp_ring_dirs_next(unsigned *cursor, bp_ring_dir *ret_dir);

/* Whether the file system of a directory is in memory. */
bool bp_ring_dirs_is_in_memory(const char *path);

/* What a ring file in this directory survives: BUGPACK_SURVIVES_…. What the path and the kind of
 * file system do not say counts as survived. */
uint64_t bp_ring_dirs_survival(const char *path, bool is_in_memory);

#endif
