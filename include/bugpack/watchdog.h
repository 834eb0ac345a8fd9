/*
 * Watchdogs: a thread that stops answering is reported while it hangs.
 *
 * The loop of a thread beats once a round. When it has not beaten for the limit, a report of the
 * kind `hang` is taken: its hang.json says which thread and since when, its stacks where the thread
 * is and who holds what it waits for. No thread is added: the monitor of the session looks, four
 * times in each limit.
 *
 *     bugpack_watchdog *watchdog;
 *     bugpack_watchdog_open(session, "ui", 2000, &watchdog, &error);
 *     while (wait_for_event(&event)) {
 *         bugpack_watchdog_beat(watchdog);
 *         handle(&event);
 *         bugpack_watchdog_pause(watchdog);     a wait for events is no hang
 *     }
 *     bugpack_watchdog_close(watchdog);
 */
#ifndef BUGPACK_WATCHDOG_H
#define BUGPACK_WATCHDOG_H

#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

BUGPACK_BEGIN_DECLS

/* One watched loop. Opaque. */
typedef struct bugpack_watchdog bugpack_watchdog;

/* The most that are open in a session. */
#define BUGPACK_WATCHDOGS_MAX 64

/* The bounds of a limit, in milliseconds. */
#define BUGPACK_WATCHDOG_LIMIT_MIN_MS 100
#define BUGPACK_WATCHDOG_LIMIT_MAX_MS 86400000

/*
 * Opens a watchdog, which counts as beaten now by the calling thread. `name` is for people and file
 * names: 1 to BUGPACK_CHANNEL_MAX_BYTES bytes; it is copied. On success the caller owns
 * `*ret_watchdog`; on failure it is untouched.
 *
 * A thread that has not beaten for `limit_ms` hangs; that is noticed up to a quarter of the limit
 * later, at most a second. One report is taken for each hang, named
 * <app>-hang-<name>-<time>.zip, but none while another one of a hang is under way, for
 * limits.hang_cooldown_ms after one was written, or beyond limits.hang_cap or limits.per_signature
 * (bugpack/session.h): such hangs are counted in the manifest of later reports. When the thread
 * beats again, BUGPACK_EVENT_HANG_ENDED says how long it took, and so do later manifests, and the
 * log of the session.
 *
 * Time does not count in which the process was stopped or paused by its control group, or the
 * machine slept: time in which the monitor did not run either, so a stop of less than a quarter of
 * the limit may count. A thread that is traced, as by a debugger, does not hang.
 *
 * Errors: INVALID (name, limit, or a session about another process), LIMIT (BUGPACK_WATCHDOGS_MAX
 * are open), NO_MEMORY, INERT, CLOSED. Any thread.
 */
BUGPACK_API BUGPACK_NODISCARD bugpack_status bugpack_watchdog_open(bugpack_session *session,
                                                                   const char *name,
                                                                   uint64_t limit_ms,
                                                                   bugpack_watchdog **ret_watchdog,
                                                                   bugpack_error *error);

/*
 * The calling thread answers; it is the watched one from now on. Costs some nanoseconds, without a
 * lock or a system call (docs/BENCHMARKS.md). NULL is ignored. Any thread, also after the close of
 * the session, as for a channel.
 */
BUGPACK_API void bugpack_watchdog_beat(bugpack_watchdog *watchdog);

/* Nothing is expected until the next beat: before a wait for input, or a modal dialog. A hang that
 * is under way ends. NULL is ignored. As bugpack_watchdog_beat. */
BUGPACK_API void bugpack_watchdog_pause(bugpack_watchdog *watchdog);

/* Ends and frees it; a hang that is under way ends. NULL is ignored, and so is one of a session
 * that is closed, with which it is freed. Any thread. */
BUGPACK_API void bugpack_watchdog_close(bugpack_watchdog *watchdog);

BUGPACK_END_DECLS

#endif
