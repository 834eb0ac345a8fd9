/*
 * Closing a session while other threads call it: who is inside, who may still enter, and what is
 * left of the session, which refuses calls for as long as it exists.
 */
#include <stdatomic.h>

#include "session/session.h"

/*
 * The newest closed sessions, each a few KiB. Handles of older ones must not be used: without a
 * bound, a host that opens and closes for ever would grow for ever. No lock, which a fork might
 * leave held: a place is taken by exchange.
 */
static bugpack *_Atomic tombstones[BUGPACK_CLOSED_KEPT];
static atomic_uint tombstone_count;

void bp_session_retain(bugpack *session) {
    (void)atomic_fetch_add_explicit(&session->reference_count, 1, memory_order_relaxed);
}

void bp_session_drop(bugpack *session) {
    if (session == NULL ||
        atomic_fetch_sub_explicit(&session->reference_count, 1, memory_order_acq_rel) != 1) {
        return;
    }
    /* In the child of a fork a lock of the parent's session may be held for ever. */
    if (bp_session_check(session) == BUGPACK_OK) {
        bp_session_free(session);
    }
}

static void leave_tombstone(bugpack *session) {
    unsigned place =
        atomic_fetch_add_explicit(&tombstone_count, 1, memory_order_relaxed) % BUGPACK_CLOSED_KEPT;
    bp_session_drop(atomic_exchange_explicit(&tombstones[place], session, memory_order_acq_rel));
}

/*
 * Whether the calling thread may wait for a close that another thread is at. That one may wait for
 * this very thread, where it is one of bugpack's, or inside a call that has run host code.
 */
static bool may_wait(void) {
    return !bp_job_queue_is_own_thread(NULL) && !bp_runner_is_inside_provider() &&
           !bp_entry_guard_is_inside(NULL);
}

void bugpack_close(bugpack *session) {
    /* In the child of a fork the threads are gone and a lock may be held for ever: leave it all. */
    if (bp_session_check(session) != BUGPACK_OK) {
        return;
    }
    /* In a callback of its own: it would wait for itself. A session that stays open harms nobody.
     */
    if (bp_job_queue_is_own_thread(session->jobs) || bp_entry_guard_is_inside(session)) {
        return;
    }
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    if (bp_entry_guard_shut(&session->guard)) {
        bp_session_retire(session);
        bp_entry_guard_set_done(&session->guard);
        leave_tombstone(session);
    } else if (may_wait()) {
        bp_entry_guard_wait_done(&session->guard);
    }
    bp_thread_hold_end(&hold);
}
