/*
 * Shared by the files of a session directory.
 */
#ifndef BP_RECORDER_SESSION_DIR_PRIVATE_H
#define BP_RECORDER_SESSION_DIR_PRIVATE_H

#include "recorder/session_dir.h"

#define BP_SESSION_LOCK_NAME "lock"
#define BP_SESSION_IDENTITY_NAME "session"

/* The identity's file: read by the version that wrote it, or not at all. */
#define BP_SESSION_IDENTITY_MAGIC "bugpack"
#define BP_SESSION_IDENTITY_VERSION 2u

typedef struct bp_session_identity_file {
    char magic[sizeof BP_SESSION_IDENTITY_MAGIC];
    uint32_t version;
    uint32_t size; /* of this struct */
    bp_session_identity identity;
} bp_session_identity_file;

/* Opens the directory of the session directories, and refuses one that others can use: they could
 * plant a session there. */
bugpack_status bp_session_base_open(const char *base_dir, bool create, int *ret_fd,
                                    bugpack_error *error);

/* The pid namespace of this process; 0 where it cannot be known. Needs no descriptor. */
uint64_t bp_session_pid_namespace(void);

/* Removes the files in a session directory, then the directory. */
void bp_session_dir_delete(int base_fd, int dir_fd, const char *name);

#endif
