/*
 * The directory of a running session, where its rings outlive it.
 *
 * The host may close every descriptor, so the session needs none: what it has to say later is in
 * the rings, and the directory is found again by its path.
 */
#ifndef BP_RECORDER_SESSION_DIR_H
#define BP_RECORDER_SESSION_DIR_H

#include "base/fd_mark.h"
#include "recorder/session_files.h"

/* The members are for reading. */
typedef struct bp_session_dir {
    char name[BP_SESSION_NAME_BYTES];
    char *path; /* absolute */
    int dir_fd; /* only if it still has the mark */
    bp_fd_mark mark;
    void *lock;
} bp_session_dir;

/* Makes the directory of a session below `base`, which is made when it is missing. Errors:
 * NO_MEMORY, and those of bp_ring_base_open. */
bugpack_status bp_session_dir_new(const bp_ring_base *base, const bp_session_identity *identity,
                                  bp_session_dir **ret_dir, bugpack_error *error);

/* Makes an empty file of mode 0600 in it, open for reading and writing. */
bugpack_status bp_session_dir_make_file(const bp_session_dir *dir, const char *name, int *ret_fd,
                                        bugpack_error *error);

/* Writes a small file, which is absent on failure; or one in the place of an older one, where a
 * crash leaves one of the two, whole. False with errno. */
bool bp_session_dir_write_file(const bp_session_dir *dir, const char *name, const void *bytes,
                               size_t byte_count);
void bp_session_dir_replace_file(const bp_session_dir *dir, const char *name, const void *bytes,
                                 size_t byte_count);

/* Makes a file of zeros, and maps it, shared, for this process alone and not for a child of fork.
 */
bugpack_status bp_session_dir_map_file(const bp_session_dir *dir, const char *name,
                                       size_t byte_count, void **ret_map, bugpack_error *error);

/* Best effort. */
void bp_session_dir_unlink(const bp_session_dir *dir, const char *name);

/* The clean end: removes the directory and its files. NULL is fine. */
void bp_session_dir_remove(bp_session_dir *dir);

/* Lets go of the directory as a process does that dies: it waits for its recovery. NULL is fine. */
void bp_session_dir_leave(bp_session_dir *dir);

#endif
