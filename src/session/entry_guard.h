/*
 * A gate that public calls go through, so that a close can wait for those that are inside, and
 * refuses all that come later. A session has one for its slow calls, and each traffic channel one
 * for its filter; the calls that only record have none, because the lock of their ring is one.
 */
#ifndef BP_SESSION_ENTRY_GUARD_H
#define BP_SESSION_ENTRY_GUARD_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <bugpack/error.h>

typedef struct bp_entry_guard {
    const void *owner; /* the session */
    atomic_uint state; /* how many are inside, and whether it is shut */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    bool is_done; /* under the mutex: what the guard led to is closed */
} bp_entry_guard;

/* One call that is inside: on its stack, from enter to leave. */
typedef struct bp_guard_entry {
    bp_entry_guard *guard;
    struct bp_guard_entry *outer; /* of the same thread */
    int cancel;
} bp_guard_entry;

/* NO_MEMORY. `owner` is only compared. */
bugpack_status bp_entry_guard_init(bp_entry_guard *guard, const void *owner, bugpack_error *error);

/* Nobody may be inside, nor come any more. */
void bp_entry_guard_release(bp_entry_guard *guard);

/*
 * Goes in, or false when the gate is shut: then there is nothing to leave. Never waits. Until the
 * leave, which has to come on the same thread, a pthread_cancel of the thread is held back: a visit
 * that did not end would keep the close waiting for ever.
 */
bool bp_entry_guard_enter(bp_entry_guard *guard, bp_guard_entry *ret_entry);
void bp_entry_guard_leave(bp_guard_entry *entry);

/*
 * Shuts the gate and waits until nobody is inside. Returns true to the one caller that shut it,
 * false to all others, which wait for nothing.
 */
bool bp_entry_guard_shut(bp_entry_guard *guard);

/* Says that all is closed behind a gate that is shut, and waits for that. */
void bp_entry_guard_tell_done(bp_entry_guard *guard);
void bp_entry_guard_wait_done(bp_entry_guard *guard);

/* Whether the calling thread is inside a gate of `owner`, or with NULL of anybody: then it must not
 * wait for its close. */
bool bp_entry_guard_is_inside(const void *owner);

#endif
