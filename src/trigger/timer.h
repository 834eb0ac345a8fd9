/*
 * A timer: one thread that does what is due, and sleeps in between. The thread is there from the
 * first start on, so that who wants nothing at a time has none.
 */
#ifndef BP_TRIGGER_TIMER_H
#define BP_TRIGGER_TIMER_H

#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_timer bp_timer;

/*
 * Does what is due at `now_ns` (monotonic) and returns when it wants to be called again at the
 * latest; UINT64_MAX: not before a wake. On the timer's thread, never twice at once.
 */
typedef uint64_t bp_timer_tick(void *context, uint64_t now_ns);

/* A timer without a thread. `name` has at most 15 bytes and is borrowed for ever. NO_MEMORY. */
bugpack_status bp_timer_new(const char *name, bp_timer_tick *tick, void *context,
                            bp_timer **ret_timer, bugpack_error *error);

/*
 * Starts its thread, which ticks at once; one that runs is woken. CLOSED after a stop, NO_MEMORY or
 * IO when there can be no thread. Any thread.
 */
bugpack_status bp_timer_start(bp_timer *timer, bugpack_error *error);

/* Lets it tick soon, because something else is due now. Nothing without a thread. Any thread. */
void bp_timer_wake(bp_timer *timer);

/* Waits for the tick that runs, and ends the thread. It stays stopped. NULL is fine. */
void bp_timer_stop(bp_timer *timer);

/* Frees it, stopped or never started. NULL is fine. */
void bp_timer_free(bp_timer *timer);

#endif
