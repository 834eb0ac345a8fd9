#include "base/entry_guard.h"

static const unsigned shut_flag = 1u << 31;

/* The calls that this thread is inside of, the innermost first. */
static _Thread_local bp_guard_entry *innermost;

void bp_entry_guard_init(bp_entry_guard *guard, const void *owner) {
    bp_lock_init(&guard->lock, BP_LOCK_ENTRY_GUARD);
    (void)pthread_cond_init(&guard->changed, NULL);
    guard->owner = owner;
    guard->is_done = false;
    atomic_init(&guard->state, 0);
}

void bp_entry_guard_release(bp_entry_guard *guard) {
    (void)pthread_cond_destroy(&guard->changed);
    bp_lock_destroy(&guard->lock);
}

bool bp_entry_guard_enter(bp_entry_guard *guard, bp_guard_entry *ret_entry) {
    int cancel = PTHREAD_CANCEL_ENABLE;
    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    unsigned state = atomic_load_explicit(&guard->state, memory_order_relaxed);
    do {
        /* Refused without a store: threads that keep calling cannot delay a close. */
        if ((state & shut_flag) != 0) {
            (void)pthread_setcancelstate(cancel, NULL);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&guard->state, &state, state + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    *ret_entry = (bp_guard_entry){.guard = guard, .outer = innermost, .cancel = cancel};
    innermost = ret_entry;
    return true;
}

void bp_entry_guard_leave(bp_guard_entry *entry) {
    bp_entry_guard *guard = entry->guard;
    innermost = entry->outer;
    /* The last call to leave a guard that is shut wakes whoever waits for that. */
    unsigned before = atomic_fetch_sub_explicit(&guard->state, 1, memory_order_release);
    if (before == (shut_flag | 1)) {
        bp_lock_acquire(&guard->lock);
        (void)pthread_cond_broadcast(&guard->changed);
        bp_lock_release(&guard->lock);
    }
    (void)pthread_setcancelstate(entry->cancel, NULL);
}

bool bp_entry_guard_shut(bp_entry_guard *guard) {
    unsigned before = atomic_fetch_or_explicit(&guard->state, shut_flag, memory_order_acquire);
    if ((before & shut_flag) != 0) {
        return false;
    }
    bp_lock_acquire(&guard->lock);
    while (atomic_load_explicit(&guard->state, memory_order_acquire) != shut_flag) {
        bp_lock_wait(&guard->lock, &guard->changed);
    }
    bp_lock_release(&guard->lock);
    return true;
}

void bp_entry_guard_set_done(bp_entry_guard *guard) {
    bp_lock_acquire(&guard->lock);
    guard->is_done = true;
    (void)pthread_cond_broadcast(&guard->changed);
    bp_lock_release(&guard->lock);
}

void bp_entry_guard_wait_done(bp_entry_guard *guard) {
    bp_lock_acquire(&guard->lock);
    while (!guard->is_done) {
        bp_lock_wait(&guard->lock, &guard->changed);
    }
    bp_lock_release(&guard->lock);
}

bool bp_entry_guard_is_inside(const void *owner) {
    const bp_guard_entry *entry = innermost;
    while (entry != NULL && owner != NULL && entry->guard->owner != owner) {
        entry = entry->outer;
    }
    return entry != NULL;
}
