/*
 * The directory of a session: where its rings lie, so that they are still there when it is not.
 *
 * `<base>/<app>-<pid>-<session id>/`, mode 0700, holds a file that tells whose it is, a lock that
 * the living session holds, and the rings. The lock is a POSIX record lock: the kernel takes it
 * back when the process ends, however it ends, and a forked child does not inherit it. So a session
 * is dead when its lock can be had, whatever became of its process id.
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

/* What a recoverer has to know of a session. Texts are NUL-terminated, any bytes; "" is unknown. */
typedef struct bp_session_identity {
    char session_id[BP_ID_BYTES];
    char app_name[65];
    char app_version[129];
    char app_build_id[129];
    char report_dir[4096];
    char bugpack_version[16];
    int64_t pid;
    int64_t target_pid; /* 0: the session was about its own process */
    char target_name[64];
    bp_instant opened;
    /* Brought up to date by bp_session_dir_tick: wall time = monotonic time + wall_offset_ns, and
     * when the session was last seen alive. */
    uint64_t wall_offset_ns;
    bp_instant last_alive;
} bp_session_identity;

typedef struct bp_session_dir bp_session_dir;

/*
 * Makes the directory of a session below `base_dir`, whose last component is made (0700) when it is
 * missing and must belong to this user and be closed to others. The caller then makes its rings'
 * files in bp_session_dir_fd. Errors: IO, DENIED (base_dir is somebody else's, or open to others),
 * NO_MEMORY.
 */
bugpack_status bp_session_dir_new(const char *base_dir, const bp_session_identity *identity,
                                  bp_session_dir **ret_dir, bugpack_error *error);

/* The directory, owned by the dir. */
int bp_session_dir_fd(const bp_session_dir *dir);
const char *bp_session_dir_path(const bp_session_dir *dir);

/* Makes an empty file of mode 0600 in it, open for reading and writing. */
bugpack_status bp_session_dir_make_file(bp_session_dir *dir, const char *name, int *ret_fd,
                                        bugpack_error *error);

/* Notes that the session is alive now. Costs one small write; one thread. */
void bp_session_dir_tick(bp_session_dir *dir);

/* The clean end: removes the directory with all that is in it. NULL is fine. */
void bp_session_dir_remove(bp_session_dir *dir);

/* How a directory that was found stands. */
typedef enum bp_session_dir_state {
    BP_SESSION_DIR_DEAD,    /* nobody holds its lock: now we do */
    BP_SESSION_DIR_RUNNING, /* a living session holds it */
    BP_SESSION_DIR_BROKEN   /* not to be read: half-made, or of another version */
} bp_session_dir_state;

/* A session that was found. */
typedef struct bp_found_session {
    bp_session_dir_state state;
    char name[256];
    int dir_fd; /* -1 unless dead */
    bp_session_identity
        identity; /* of a dead one; of a running one as far as it is written, or zeros */
    int64_t pid;  /* of a running one: who holds its lock; see bp_session_dir_lock_holder */
    int lock_fd;  /* held while dead: two recoverers never share one */
} bp_found_session;

/*
 * Lists the sessions below `base_dir`, oldest name first, calling `visit` for each; `app_name`
 * (NULL for all) leaves others out. What `visit` gets is borrowed. It returns true when a dead
 * session was turned into a report: then its directory is removed. Directories of other users,
 * links, and what is not named as ours are passed over. A base directory that does not exist is an
 * empty one.
 */
typedef bool bp_session_dir_visit(const bp_found_session *found, void *context);
bugpack_status bp_session_dir_scan(const char *base_dir, const char *app_name,
                                   bp_session_dir_visit *visit, void *context,
                                   bugpack_error *error);

#endif
