/*
 * Guards files that this process has mapped against being truncated by another one, which would be
 * SIGBUS at the next store; and keeps time, so that the same thread can serve a recorder.
 *
 * Linux: a write lease (fcntl(2), F_SETLEASE) holds up whoever opens or truncates the file until
 * its holder lets go, for at most /proc/sys/fs/lease-break-time (45 s), after which the kernel
 * takes the lease away: only a process that is stopped for so long can still be harmed. The signal
 * that announces it goes to one thread of ours (F_SETOWN_EX), which has it blocked and waits for
 * it, so that the host neither sees it nor needs a handler. Any opening by others counts, also for
 * reading only: a lease that allows readers cannot be had on a file that is open for writing. So
 * nobody may look into a living session's files who does not want to end the guard.
 *
 * Elsewhere: nothing, and rings stay in memory. macOS has no leases; its flag UF_IMMUTABLE, set
 * after mapping, would hold off a truncation, but would also keep a dead session's files from
 * being removed, and nobody has tried it.
 */
#ifndef BP_PLATFORM_FILE_GUARD_H
#define BP_PLATFORM_FILE_GUARD_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_file_guard bp_file_guard;

/* Called every interval on the guard's thread. While it runs, leases wait. */
typedef void bp_file_guard_tick(void *context);

/*
 * Called on the guard's thread when somebody else wants the file: to stop using the mapping (see
 * bp_ring_detach). True when that is done; the other one then goes on, and this is not called for
 * the file again. On false it is called again after a tenth of a second. It must not call
 * bp_file_guard_…
 */
typedef bool bp_file_guard_yield(void *context);

/*
 * Starts the thread, "bugpack-guard". `tick` may be NULL; else it is called every `tick_ms`, from
 * one interval after the start on; a beat that was missed is left out. UNSUPPORTED where there is
 * nothing to guard with, and ticks are wanted from somewhere else.
 */
bugpack_status bp_file_guard_start(uint32_t tick_ms, bp_file_guard_tick *tick, void *tick_context,
                                   bp_file_guard **ret_guard, bugpack_error *error);

/*
 * Guards the regular file `fd`, which has to be this process's, owned by its user, and open nowhere
 * else; `fd` stays open until it is removed. UNSUPPORTED where that is not possible: a network file
 * system, a filter on system calls, somebody who has it open. Any thread.
 */
bugpack_status bp_file_guard_add(bp_file_guard *guard, int fd, bp_file_guard_yield *yield,
                                 void *context, bugpack_error *error);

/* Ends it; when this returns, `yield` is not running. Unknown descriptors are fine. Any thread but
 * the guard's. */
void bp_file_guard_remove(bp_file_guard *guard, int fd);

/* Ends the thread, and all guards. NULL is fine. */
void bp_file_guard_stop(bp_file_guard *guard);

#endif
