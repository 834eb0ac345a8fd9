#include "session/live.h"

#include <pthread.h>

#include "base/status.h"
#include "session/events.h"
#include "session/limits.h"
#include "session/pedantic.h"
#include "session/session.h"

/* The first manual order that is on its way; `may_join`: that others may share. The lock is held.
 */
static bp_order *find_manual(bugpack *session, bool may_join) {
    bp_order *order = session->live_orders;
    while (order != NULL &&
           (!order->is_manual ||
            (may_join && (!order->may_be_shared || atomic_load(&order->token.is_cancelled))))) {
        order = order->next_live;
    }
    return order;
}

/* Behind the others, so that the first is the oldest. The lock is held. */
static void append(bp_order **list, bp_order *order) {
    while (*list != NULL) {
        list = &(*list)->next_live;
    }
    *list = order;
}

static void unlink_order(bugpack *session, const bp_order *order) {
    bp_order **link = &session->live_orders;
    while (*link != order) {
        link = &(*link)->next_live;
    }
    *link = order->next_live;
}

/*
 * The worker may have taken it up, but not finished it, when this returns: for that it needs the
 * lock. The worker's own lock is held inside of ours here, and never the other way round.
 */
static bugpack_status submit(bugpack *session, bp_order *order, bugpack_error *error) {
    order->ticket = atomic_load(&session->report_sequence) + 1;
    append(&session->live_orders, order);
    bugpack_status status = bp_worker_submit(session->worker, order);
    if (status == BUGPACK_OK) {
        atomic_store(&session->report_sequence, order->ticket);
        return BUGPACK_OK;
    }
    unlink_order(session, order);
    return status == BUGPACK_ERR_BUSY
               ? bp_fail(error, status, "no report was taken: %u wait already",
                         (unsigned)BUGPACK_REPORT_QUEUE_MAX)
               : bp_fail(error, status, "no report was taken: %s", bugpack_status_name(status));
}

bp_live_entry bp_live_enter(bugpack *session, bp_order *order, uint64_t *ret_ticket,
                            bugpack_status *ret_status, bugpack_error *error) {
    bp_live_entry entry = BP_LIVE_ACCEPTED;
    bugpack_status status = BUGPACK_OK;
    bugpack_when_busy when_busy =
        order->is_manual ? session->options.when_busy : BUGPACK_WHEN_BUSY_QUEUE;
    (void)pthread_mutex_lock(&session->orders_mutex);
    bp_order *other = NULL;
    if (when_busy == BUGPACK_WHEN_BUSY_REFUSE && find_manual(session, false) != NULL) {
        status = bp_fail(error, BUGPACK_ERR_BUSY, "no report was taken: another one is under way");
    } else if (when_busy == BUGPACK_WHEN_BUSY_COALESCE && order->may_be_shared) {
        other = find_manual(session, true);
    }
    if (other != NULL) {
        entry = BP_LIVE_JOINED;
        *ret_ticket = other->ticket;
        append(&other->joined, order);
    } else if (status == BUGPACK_OK) {
        status = submit(session, order, error);
        *ret_ticket = order->ticket; /* the worker cannot have freed it: we hold the lock */
    }
    (void)pthread_mutex_unlock(&session->orders_mutex);
    *ret_status = status;
    return status == BUGPACK_OK ? entry : BP_LIVE_REFUSED;
}

/* From here on it can be neither joined nor cancelled. The freezer must have let go of it. */
static void finish(bugpack *session, bp_order *order, const bugpack_report_result *result) {
    bp_job_wait_snapshotted(session, order);
    (void)pthread_mutex_lock(&session->orders_mutex);
    unlink_order(session, order);
    (void)pthread_mutex_unlock(&session->orders_mutex);
    if (order->on_settled != NULL) {
        order->on_settled(session, order, result);
    }
    bp_events_tell(session, order,
                   result->status == BUGPACK_OK ? BUGPACK_EVENT_WRITTEN : BUGPACK_EVENT_FAILED,
                   result);
    if (order->on_done != NULL) {
        order->on_done(result, order->on_done_context);
    }
    while (order->joined != NULL) {
        bp_order *joined = order->joined;
        order->joined = joined->next_live;
        if (joined->on_done != NULL) {
            joined->on_done(result, joined->on_done_context);
        }
        bp_order_free(joined);
    }
    bp_order_free(order);
}

/* A report that is given up before it was begun. */
static void finish_unbegun(bugpack *session, bp_order *order) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    result.status = bp_cancel_check(&order->token, &result.error);
    result.elapsed_ns = bp_clock_monotonic_ns() - order->triggered.monotonic_ns;
    finish(session, order, &result);
}

void bp_live_run(bugpack *session, bp_order *order) {
    if (bp_cancel_is_due(&order->token)) {
        finish_unbegun(session, order);
        return;
    }
    bugpack_report_result result;
    bp_events_tell(session, order, BUGPACK_EVENT_STARTED, NULL);
    bp_session_take_report(session, order, &result);
    bp_limits_apply(session, order, &result);
    finish(session, order, &result);
}

/* One that is cancelled and still in the worker's queue, and now out of it; NULL when there is
 * none. */
static bp_order *withdraw_cancelled(bugpack *session) {
    (void)pthread_mutex_lock(&session->orders_mutex);
    bp_order *order = session->live_orders;
    while (order != NULL && !(atomic_load(&order->token.is_cancelled) &&
                              bp_worker_withdraw(session->worker, order))) {
        order = order->next_live;
    }
    if (order == NULL) {
        atomic_store(&session->has_cancelled, false);
    }
    (void)pthread_mutex_unlock(&session->orders_mutex);
    return order;
}

void bp_live_end_cancelled(bugpack *session) {
    bp_order *order;
    while (atomic_load(&session->has_cancelled) && (order = withdraw_cancelled(session)) != NULL) {
        finish_unbegun(session, order);
    }
}

static bool cancel(bugpack *session, uint64_t ticket) {
    /* The line first: what leaves it meanwhile is taken back already. */
    bool is_found = ticket == 0 && bp_pedantic_cancel(session);
    (void)pthread_mutex_lock(&session->orders_mutex);
    for (bp_order *order = session->live_orders; order != NULL; order = order->next_live) {
        if (ticket == 0 || order->ticket == ticket) {
            atomic_store(&order->token.is_cancelled, true);
            is_found = true;
        }
    }
    if (is_found) {
        atomic_store(&session->has_cancelled, true);
        (void)pthread_cond_broadcast(&session->orders_changed);
    }
    (void)pthread_mutex_unlock(&session->orders_mutex);
    if (is_found) {
        bp_runner_wake(session->runner);
    }
    return is_found;
}

bugpack_status bugpack_cancel(bugpack *session, uint64_t ticket) {
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status == BUGPACK_OK) {
        status = cancel(session, ticket) ? BUGPACK_OK : BUGPACK_ERR_INVALID;
        bp_session_leave(&entry);
    }
    return status;
}
