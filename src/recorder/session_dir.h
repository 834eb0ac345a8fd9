/*
 * The directory of a session, where its rings outlive it.
 *
 * `<base>/<app>-<pid>-<session id>/`, mode 0700, contains the session's identity, a lock that the
 * running session holds, and the rings. A session is dead when its lock can be taken, whatever
 * became of its process id (recorder/session_lock.h).
 *
 * The host may close every descriptor, so the session needs none: what it has to say later is in
 * the rings, and the directory is found again by its path.
 */
#ifndef BP_RECORDER_SESSION_DIR_H
#define BP_RECORDER_SESSION_DIR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "base/clock.h"
#include "base/id.h"
#include "ring/ring.h"

/* What recovery needs to know of a session. Texts are NUL-terminated, any bytes; "" is unknown. */
typedef struct bp_session_identity {
    char session_id[BP_ID_BYTES];
    char app_name[65];
    char app_version[129];
    char app_build_id[129];
    char report_dir[4096];
    char bugpack_version[16];
    int64_t pid;
    uint64_t pid_namespace; /* that `pid` is of: an inode of /proc/<pid>/ns; 0: unknown */
    int64_t target_pid;     /* 0: the session was about its own process */
    char target_name[64];
    bp_instant opened;
    uint64_t uptime_ns; /* of the process that the session is about, at `opened`; 0: not known */
    /* Of a dead session, from its rings. Wall time = monotonic time + wall_offset_ns. */
    uint64_t wall_offset_ns;
    bp_instant last_alive;
} bp_session_identity;

typedef struct bp_session_dir bp_session_dir;

/*
 * Makes the directory of a session below `base_dir`, whose last component is made (0700) when it is
 * missing and must belong to this user and be closed to others. Errors: IO, DENIED (base_dir is
 * another user's, or open to others), NO_MEMORY.
 */
bugpack_status bp_session_dir_new(const char *base_dir, const bp_session_identity *identity,
                                  bp_session_dir **ret_dir, bugpack_error *error);

/* Makes an empty file of mode 0600 in it, open for reading and writing. */
bugpack_status bp_session_dir_make_file(const bp_session_dir *dir, const char *name, int *ret_fd,
                                        bugpack_error *error);

/* Best effort. */
void bp_session_dir_rename(const bp_session_dir *dir, const char *from, const char *to);
void bp_session_dir_unlink(const bp_session_dir *dir, const char *name);

/*
 * The file name of a ring. `number`: of a channel, else 0. While the ring moves there is a second
 * file, with a suffix: the ring is in that one if it has a header.
 */
#define BP_RING_NAME_BYTES 32
#define BP_RING_NEW_SUFFIX ".new"
void bp_session_dir_ring_name(bp_ring_kind kind, uint32_t number, char name[BP_RING_NAME_BYTES]);

/* The format of the file name of a channel's bp_traffic_identity; `%u` is its number. */
#define BP_CHANNEL_FILE_FORMAT "channel-%u"

/* The clean end: removes the directory and its files. NULL is fine. */
void bp_session_dir_remove(bp_session_dir *dir);

/* Its path, borrowed. */
const char *bp_session_dir_path(const bp_session_dir *dir);

/* Lets go of the directory as a process does that dies: it waits for its recovery. NULL is fine. */
void bp_session_dir_leave(bp_session_dir *dir);

typedef enum bp_session_dir_state {
    BP_SESSION_DIR_DEAD,    /* its lock was free and is now ours */
    BP_SESSION_DIR_RUNNING, /* a process holds its lock */
    BP_SESSION_DIR_BROKEN   /* half-made, or of another version */
} bp_session_dir_state;

/* A session that was found. */
typedef struct bp_found_session {
    bp_session_dir_state state;
    char name[256];
    int dir_fd; /* -1 unless dead */
    /* Of a running one as far as it is written, or zeros. */
    bp_session_identity identity;
    /* Of a running one, the holder of its lock; 0: in another pid namespace, -1: none now. */
    int64_t pid;
    int lock_fd; /* held while dead, so that no two recoveries share one */
} bp_found_session;

/*
 * Calls `visit` for each session below `base_dir`, by name; `app_name` (NULL for all) filters.
 * `visit` borrows its argument and returns true when it made a report of a dead session, whose
 * directory is then removed. Directories of other users, links, and other names are skipped. A
 * missing base directory is an empty one.
 */
typedef bool bp_session_dir_visit(const bp_found_session *found, void *context);
bugpack_status bp_session_dir_scan(const char *base_dir, const char *app_name,
                                   bp_session_dir_visit *visit, void *context,
                                   bugpack_error *error);

#endif
