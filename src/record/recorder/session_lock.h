/*
 * Who owns a session directory.
 *
 * A session holds an open-file-description lock (fcntl(2)) by a mapping of its lock file, whose
 * descriptor is closed: the lock ends with the mapping, which a forked child does not have. So it
 * survives a host that closes descriptors, and ends with the process, whoever outlives that. Who
 * recovers a session holds a POSIX record lock, which names its process. The two kinds conflict.
 * Inside one process a list of names decides, because POSIX locks do not.
 */
#ifndef BP_RECORDER_SESSION_LOCK_H
#define BP_RECORDER_SESSION_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

/* Lists a directory's name as used by this process. BUSY when it is already; NO_MEMORY. Any thread.
 */
bugpack_status bp_session_lock_claim(const char *name);
void bp_session_lock_release(const char *name);

/* Takes the lock of a dead session's file without waiting. Held until the process closes any
 * descriptor of the file, so claim the name before opening one. Returns 0 or an errno; EAGAIN when
 * somebody holds it. */
int bp_session_lock_take(int fd);

/* Who holds it: a process that recovers it, or one of these. */
#define BP_SESSION_LOCK_NOBODY (-1)
#define BP_SESSION_LOCK_SESSION (-2) /* the session itself */
#define BP_SESSION_LOCK_ELSEWHERE 0  /* a process in another pid namespace */
int64_t bp_session_lock_holder(int fd);

/* True if this system has locks that a session can hold. */
extern const bool bp_session_lock_is_supported;

/* Takes the lock of the file `fd` for a session, until the release; the caller closes `fd` then.
 * NULL with errno. */
void *bp_session_lock_hold(int fd);

/* NULL is fine. */
void bp_session_lock_let_go(void *held);

#endif
