#include "session/gate.h"

#include "base/status.h"
#include "platform/thread.h"

static const unsigned shut_flag = 1u << 31;

/* The calls that this thread is inside of, the innermost first. */
static _Thread_local bp_visit *innermost;

bugpack_status bp_gate_init(bp_gate *gate, const void *owner, bugpack_error *error) {
    if (pthread_mutex_init(&gate->mutex, NULL) != 0) {
        return bp_fail_memory(error, "make a gate");
    }
    bugpack_status status = bp_condition_init(&gate->changed, error);
    if (status != BUGPACK_OK) {
        (void)pthread_mutex_destroy(&gate->mutex);
        return status;
    }
    gate->owner = owner;
    gate->is_done = false;
    atomic_init(&gate->state, 0);
    return BUGPACK_OK;
}

void bp_gate_release(bp_gate *gate) {
    (void)pthread_cond_destroy(&gate->changed);
    (void)pthread_mutex_destroy(&gate->mutex);
}

bool bp_gate_enter(bp_gate *gate, bp_visit *ret_visit) {
    int cancel = bp_thread_hold_cancel();
    unsigned state = atomic_load_explicit(&gate->state, memory_order_relaxed);
    do {
        /* Refused without a store: whoever keeps on calling cannot keep a close from its end. */
        if ((state & shut_flag) != 0) {
            bp_thread_allow_cancel(cancel);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(&gate->state, &state, state + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    *ret_visit = (bp_visit){.gate = gate, .outer = innermost, .cancel = cancel};
    innermost = ret_visit;
    return true;
}

void bp_gate_leave(bp_visit *visit) {
    bp_gate *gate = visit->gate;
    innermost = visit->outer;
    /* The last one out of a gate that is shut wakes who waits for it. */
    unsigned before = atomic_fetch_sub_explicit(&gate->state, 1, memory_order_release);
    if (before == (shut_flag | 1)) {
        (void)pthread_mutex_lock(&gate->mutex);
        (void)pthread_cond_broadcast(&gate->changed);
        (void)pthread_mutex_unlock(&gate->mutex);
    }
    bp_thread_allow_cancel(visit->cancel);
}

bool bp_gate_shut(bp_gate *gate) {
    unsigned before = atomic_fetch_or_explicit(&gate->state, shut_flag, memory_order_acquire);
    if ((before & shut_flag) != 0) {
        return false;
    }
    (void)pthread_mutex_lock(&gate->mutex);
    while (atomic_load_explicit(&gate->state, memory_order_acquire) != shut_flag) {
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
    return true;
}

void bp_gate_tell_done(bp_gate *gate) {
    (void)pthread_mutex_lock(&gate->mutex);
    gate->is_done = true;
    (void)pthread_cond_broadcast(&gate->changed);
    (void)pthread_mutex_unlock(&gate->mutex);
}

void bp_gate_wait_done(bp_gate *gate) {
    (void)pthread_mutex_lock(&gate->mutex);
    while (!gate->is_done) {
        (void)pthread_cond_wait(&gate->changed, &gate->mutex);
    }
    (void)pthread_mutex_unlock(&gate->mutex);
}

bool bp_gate_is_inside(const void *owner) {
    const bp_visit *visit = innermost;
    while (visit != NULL && owner != NULL && visit->gate->owner != owner) {
        visit = visit->outer;
    }
    return visit != NULL;
}
