#include "session/entry_guard.h"

#include "base/status.h"
#include "platform/thread.h"

static const unsigned shut_flag = 1u << 31;

/* The calls that this thread is inside of, the innermost first. */
static _Thread_local bp_guard_entry *innermost;

bugpack_status bp_entry_guard_init(bp_entry_guard *guard, const void *owner, bugpack_error *error) {
    if (pthread_mutex_init(&guard->mutex, NULL) != 0) {
        return bp_fail_memory(error, "make a guard");
    }
    bugpack_status status = bp_condition_init(&guard->changed, error);
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&guard->mutex);
        return status;
    }
    guard->owner = owner;
    guard->is_done = false;
    atomic_init(&guard->state, 0);
    return BUGPACK_OK;
}

void bp_entry_guard_release(bp_entry_guard *guard) {
    (void)pthread_cond_destroy(&guard->changed);
    (void)pthread_mutex_destroy(&guard->mutex);
}

bool bp_entry_guard_enter(bp_entry_guard *guard, bp_guard_entry *ret_entry) {
    int cancel = bp_thread_hold_cancel();
    unsigned state = atomic_load_explicit(&guard->state, memory_order_relaxed);
    do {
        /* Refused without a store: whoever keeps on calling cannot keep a close from its end. */
        if ((state & shut_flag) != 0) {
            bp_thread_allow_cancel(cancel);
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
    /* The last one out of a gate that is shut wakes who waits for it. */
    unsigned before = atomic_fetch_sub_explicit(&guard->state, 1, memory_order_release);
    if (before == (shut_flag | 1)) {
        (void)pthread_mutex_lock(&guard->mutex);
        (void)pthread_cond_broadcast(&guard->changed);
        (void)pthread_mutex_unlock(&guard->mutex);
    }
    bp_thread_allow_cancel(entry->cancel);
}

bool bp_entry_guard_shut(bp_entry_guard *guard) {
    unsigned before = atomic_fetch_or_explicit(&guard->state, shut_flag, memory_order_acquire);
    if ((before & shut_flag) != 0) {
        return false;
    }
    (void)pthread_mutex_lock(&guard->mutex);
    while (atomic_load_explicit(&guard->state, memory_order_acquire) != shut_flag) {
        (void)pthread_cond_wait(&guard->changed, &guard->mutex);
    }
    (void)pthread_mutex_unlock(&guard->mutex);
    return true;
}

void bp_entry_guard_tell_done(bp_entry_guard *guard) {
    (void)pthread_mutex_lock(&guard->mutex);
    guard->is_done = true;
    (void)pthread_cond_broadcast(&guard->changed);
    (void)pthread_mutex_unlock(&guard->mutex);
}

void bp_entry_guard_wait_done(bp_entry_guard *guard) {
    (void)pthread_mutex_lock(&guard->mutex);
    while (!guard->is_done) {
        (void)pthread_cond_wait(&guard->changed, &guard->mutex);
    }
    (void)pthread_mutex_unlock(&guard->mutex);
}

bool bp_entry_guard_is_inside(const void *owner) {
    const bp_guard_entry *entry = innermost;
    while (entry != NULL && owner != NULL && entry->guard->owner != owner) {
        entry = entry->outer;
    }
    return entry != NULL;
}
