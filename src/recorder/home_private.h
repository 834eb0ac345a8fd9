/*
 * What making and finding a session's directory share.
 */
#ifndef BP_RECORDER_HOME_PRIVATE_H
#define BP_RECORDER_HOME_PRIVATE_H

#include "recorder/home.h"

#define BP_HOME_LOCK_NAME "lock"
#define BP_HOME_IDENTITY_NAME "session"

/* How the identity lies in its file: it is read by the version that wrote it, or not at all. */
typedef struct bp_home_file {
    char magic[8]; /* "bugpack" and a NUL */
    uint32_t version;
    uint32_t size; /* of this struct */
    bp_home_identity identity;
} bp_home_file;

#define BP_HOME_MAGIC "bugpack"
#define BP_HOME_VERSION 1u

/*
 * Takes the write lock without waiting. POSIX record locks do not conflict inside one process, so a
 * list of the names that this process holds stands beside them.
 */
bool bp_home_lock(int fd);
/* The process that holds it: -1 for nobody, 0 for one that cannot be seen from here. */
int64_t bp_home_lock_holder(int fd);
bool bp_home_claim_name(const char *name);
void bp_home_release_name(const char *name);

/* Opens `base_dir`, and refuses one that is not this user's alone. */
bugpack_status bp_home_open_base(const char *base_dir, bool create, int *ret_fd,
                                 bugpack_error *error);

/* Removes the regular files in a home, and then the home. */
void bp_home_delete(int base_fd, int dir_fd, const char *name);

#endif
