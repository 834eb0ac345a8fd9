/*
 * What making and finding a session's directory share.
 */
#ifndef BP_RECORDER_SESSION_DIR_PRIVATE_H
#define BP_RECORDER_SESSION_DIR_PRIVATE_H

#include "recorder/session_dir.h"

#define BP_SESSION_DIR_LOCK_NAME "lock"
#define BP_SESSION_DIR_IDENTITY_NAME "session"

/* How the identity lies in its file: it is read by the version that wrote it, or not at all. */
typedef struct bp_session_dir_file {
    char magic[8]; /* "bugpack" and a NUL */
    uint32_t version;
    uint32_t size; /* of this struct */
    bp_session_identity identity;
} bp_session_dir_file;

#define BP_SESSION_DIR_MAGIC "bugpack"
#define BP_SESSION_DIR_VERSION 1u

/*
 * Takes the write lock without waiting. POSIX record locks do not conflict inside one process, so a
 * list of the names that this process holds stands beside them.
 */
bool bp_session_dir_lock(int fd);
/* The process that holds it: -1 for nobody, 0 for one that cannot be seen from here. */
int64_t bp_session_dir_lock_holder(int fd);
bool bp_session_dir_claim_name(const char *name);
void bp_session_dir_release_name(const char *name);

/* Opens `base_dir`, and refuses one that is not this user's alone. */
bugpack_status bp_session_dir_open_base(const char *base_dir, bool create, int *ret_fd,
                                        bugpack_error *error);

/* Removes the regular files in a home, and then the dir. */
void bp_session_dir_delete(int base_fd, int dir_fd, const char *name);

#endif
