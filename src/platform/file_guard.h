/*
 * Guards mapped files against truncation by another process, which would be SIGBUS at the next
 * store. One thread of ours waits for that, and may do other work in between.
 *
 * Linux: a write lease (fcntl(2), F_SETLEASE) blocks whoever opens or truncates the file, for at
 * most /proc/sys/fs/lease-break-time (45 s). Opening for reading counts too. The lease is of the
 * open file, which a mapping keeps open: no descriptor is held, which the host could close, and the
 * lease ends with the mapping. The signal that announces who waits goes to the waiting thread alone
 * (F_SETOWN_EX), which has it blocked: the host neither sees it nor needs a handler. /proc/locks
 * says which file it is about. Another signal, for that thread too, is a wake.
 *
 * Elsewhere nothing is guarded, and rings stay in memory (docs/ARCHITECTURE.md).
 */
#ifndef BP_PLATFORM_FILE_GUARD_H
#define BP_PLATFORM_FILE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_file_guard bp_file_guard;

/*
 * Called on the waiting thread when somebody else wants the file: to end its mapping, which others
 * wait for, and perhaps to guard another file in its place (bp_file_guard_replace). Called again at
 * the time that it returns; UINT64_MAX: not before somebody wants the file. It may be called
 * without need, and must not call any other bp_file_guard_….
 */
typedef uint64_t bp_file_guard_yield(void *context, uint64_t now_ns);

/* Whether this system can guard files at all. */
bool bp_file_guard_is_supported(void);

/* NO_MEMORY. */
bugpack_status bp_file_guard_new(bp_file_guard **ret_guard, bugpack_error *error);

/* No file may be guarded any more, and no thread may wait. NULL is fine. */
void bp_file_guard_free(bp_file_guard *guard);

/* Makes the calling thread the one that waits. It blocks every signal (bp_thread_start). */
void bp_file_guard_bind(bp_file_guard *guard);

/*
 * Waits until `deadline_ns` (monotonic; UINT64_MAX: none) or a wake, and yields files meanwhile. It
 * may return earlier. A wake that came before the wait ends it at once. True: there was a wake, or
 * something came in on a descriptor that announces it. The bound thread.
 */
bool bp_file_guard_wait(bp_file_guard *guard, uint64_t deadline_ns);
void bp_file_guard_wake(bp_file_guard *guard); /* any thread, once a thread is bound */

/* Lets a socket end the wait when something comes in. A thread must be bound. False with errno
 * where the system cannot do that. Any thread. */
bool bp_file_guard_announce(bp_file_guard *guard, int fd);

/*
 * Guards the regular file `fd`, which its user owns, has mapped, and nobody else has open; the
 * descriptor may be closed. `context` is unique. A thread must be bound. UNSUPPORTED where that is
 * not possible: another system, a network file system, a filter on system calls, a file that
 * somebody has open. Any thread.
 */
bugpack_status bp_file_guard_add(bp_file_guard *guard, int fd, bp_file_guard_yield *yield,
                                 void *context, bugpack_error *error);

/* In `yield` alone: guards another file under the same context. Fails like bp_file_guard_add. */
bugpack_status bp_file_guard_replace(bp_file_guard *guard, int fd, const void *context,
                                     bugpack_error *error);

/* Ends it, for one file or for all; when this returns, `yield` is not running. The lease goes with
 * the mapping. Unknown contexts are fine. Any thread but the bound one. */
void bp_file_guard_remove(bp_file_guard *guard, const void *context);
void bp_file_guard_clear(bp_file_guard *guard);

#endif
