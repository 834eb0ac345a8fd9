/*
 * Who owns a session directory.
 *
 * Both locks are of open file descriptions (fcntl(2), F_OFD_SETLK), so they conflict inside one
 * process too. A session holds one of the first byte by a mapping of its lock file, whose
 * descriptor is closed: the lock ends with the mapping, which a forked child does not have. So it
 * survives a host that closes descriptors, and ends with the process, whoever outlives that. A
 * recovery holds one of the whole file.
 */
#ifndef BP_RECORDER_SESSION_LOCK_H
#define BP_RECORDER_SESSION_LOCK_H

#include <stdbool.h>

/* Takes the lock of a dead session's file without waiting, until the drop. Returns 0 or an errno:
 * EAGAIN when its session runs, EBUSY when somebody else recovers it. */
int bp_session_lock_take(int fd);

/* Unlocks, even if a forked child still has the descriptor, and closes. -1 is fine. */
void bp_session_lock_drop(int fd);

/* True if this system has locks that a session can hold. */
extern const bool bp_session_lock_is_supported;

/* Takes the lock of the file `fd` for a session, until the release; the caller closes `fd` then.
 * NULL with errno. */
void *bp_session_lock_hold(int fd);

/* NULL is fine. */
void bp_session_lock_let_go(void *held);

#endif
