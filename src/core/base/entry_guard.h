/*
 * Counts the calls that are inside, so that a close can wait for them and refuse later ones. A
 * session has one guard for its slow calls, and each channel one for its filter. Calls that only
 * record need none: they have the lock of their ring.
 */
#ifndef BP_BASE_ENTRY_GUARD_H
#define BP_BASE_ENTRY_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>

#include <bugpack/error.h>

#include "base/lock.h"

typedef struct bp_entry_guard {
    const void *owner; /* the session */
    atomic_uint state; /* how many are inside, and whether it is shut */
    bp_lock lock;
    pthread_cond_t changed;
    bool is_done; /* under the lock: what the guard protected is closed */
} bp_entry_guard;

/* One call that is inside: on its stack, from enter to leave. */
typedef struct bp_guard_entry {
    bp_entry_guard *guard;
    struct bp_guard_entry *outer; /* of the same thread */
    int cancel;
} bp_guard_entry;

/* `owner` is only compared. */
void bp_entry_guard_init(bp_entry_guard *guard, const void *owner);

/* Nobody may be inside, nor come later. */
void bp_entry_guard_release(bp_entry_guard *guard);

/*
 * Enters, or false when the guard is shut: then there is nothing to leave. Never waits. The leave
 * has to come on the same thread. Until then a pthread_cancel of the thread is held back: a call
 * that never leaves would block the close for ever.
 */
bool bp_entry_guard_enter(bp_entry_guard *guard, bp_guard_entry *ret_entry);
void bp_entry_guard_leave(bp_guard_entry *entry);

/* Shuts the guard and waits until nobody is inside. True for the one caller that shut it; all
 * others get false and wait for nothing. */
bool bp_entry_guard_shut(bp_entry_guard *guard);

/* Reports that everything a guard protects is closed, and waits for that. */
void bp_entry_guard_set_done(bp_entry_guard *guard);
void bp_entry_guard_wait_done(bp_entry_guard *guard);

/* True if the calling thread is inside a guard of `owner`, or with NULL of anybody: then it must
 * not wait for its close. */
bool bp_entry_guard_is_inside(const void *owner);

#endif
