/*
 * What of a staged file differs from system to system: each call is implemented once per system
 * (linux/, darwin/, stub/). All but the first return -1 with errno on failure.
 */
#ifndef BP_PLATFORM_STAGED_SYSTEM_H
#define BP_PLATFORM_STAGED_SYSTEM_H

#include <stdbool.h>

/* The path by which linkat(2) can give this unnamed file a name; false where there is none. */
#define BP_STAGED_PATH_BYTES 32
bool bp_staged_unnamed_path(int fd, char ret_path[BP_STAGED_PATH_BYTES]);

/* Brings what was written to the disk, as far down as the system can reach. */
int bp_staged_sync(int fd);

/*
 * Renames within `dir_fd`; EEXIST where `to` is taken, by whatever. Where that cannot be had in one
 * step it fails: it never replaces, and never holds the place with an empty file.
 */
int bp_staged_rename_new(int dir_fd, const char *from, const char *to);

#endif
