/*
 * Finding the sessions below a directory: those that run, and those that died.
 */
#ifndef BP_RECORDER_SESSION_SCAN_H
#define BP_RECORDER_SESSION_SCAN_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "recorder/session_files.h"

typedef enum bp_found_state {
    BP_FOUND_DEAD,    /* its lock was free and is now ours */
    BP_FOUND_RUNNING, /* its process, which may be this one, holds its lock */
    BP_FOUND_UNSEEN   /* it could not be examined; `error` says why */
} bp_found_state;

/* A session that was found. */
typedef struct bp_found_session {
    bp_found_state state;
    char name[BP_SESSION_NAME_BYTES];
    bugpack_error error;
    /* The status says whether the identity could be read. If not, it has what the name says, and
     * when it is dead, the time of its newest file as last_alive. */
    bugpack_error identity_error;
    bp_session_identity identity;
    bool has_rings; /* of a dead one */
    int dir_fd;     /* -1 unless dead */
    int64_t pid;    /* of a running one, the holder of its lock; 0: in another pid namespace */
    int lock_fd;    /* held while dead, so that no two recoveries share one */
} bp_found_session;

typedef struct bp_session_scan {
    /* Returns true when a dead session is not needed any more: its directory is removed. */
    bool (*visit)(const bp_found_session *found, void *context);
    /* A dead session that `visit` has kept is removed, because there are too many. */
    void (*dropped)(const char *name, uint64_t bytes, void *context);
    void *context; /* of both */
} bp_session_scan;

/* Dead sessions that may stay: so many of an app, and this part of the file system. The newest one
 * always may. */
#define BP_SESSION_DEAD_MAX 16
#define BP_SESSION_DEAD_PART 4

/*
 * Visits each session below `base` whose app is `app_name` (NULL for all), by name, except those
 * that somebody else recovers. Links and directories of other users are no sessions. A directory
 * that a process left without a lock, or empty, counts as that of a dead session, unless the
 * process of its name lives.
 *
 * Errors: those of bp_ring_base_open, and IO or NO_MEMORY when the directory cannot be listed to
 * its end; what was listed was visited.
 */
bugpack_status bp_session_scan_run(const bp_session_scan *scan, const bp_ring_base *base,
                                   const char *app_name, bugpack_error *error);

#endif
