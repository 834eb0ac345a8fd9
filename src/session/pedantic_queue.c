/*
 * Orders of gaps on their way to the worker. Its queue is short, so that a person's trigger never
 * waits long; a protocol may bring fifty new gaps in a millisecond, and each is to be reported. So
 * they wait here, and at most `worker_share` of them are there at a time.
 */
#include <pthread.h>

#include "session/pedantic.h"
#include "session/session.h"

static const unsigned worker_share = BUGPACK_REPORT_QUEUE_MAX / 2;

/*
 * Hands over what there is room for. The mutex is held, also over the handing over: when the queue
 * is full of others, one of them is yet to end, and feeds again behind itself.
 */
static void feed(bugpack *session, bp_pedantic *pedantic) {
    while (pedantic->first != NULL && pedantic->working_count < worker_share) {
        bp_order *order = pedantic->first;
        bp_order *next = order->next;
        if (bp_order_offer(session, order, NULL, NULL) != BUGPACK_OK) {
            return;
        }
        pedantic->first = next;
        pedantic->working_count++;
    }
}

void bp_pedantic_feed(bugpack *session) {
    bp_pedantic *pedantic = session->pedantic;
    (void)pthread_mutex_lock(&pedantic->mutex);
    feed(session, pedantic);
    (void)pthread_mutex_unlock(&pedantic->mutex);
}

/* The worker is done with an order of ours. */
static void settle(bugpack *session, const bp_order *order, const bugpack_report_result *result) {
    bp_pedantic *pedantic = session->pedantic;
    bool is_written = result->status == BUGPACK_OK;
    if (!is_written) {
        bugpack_log(session, BUGPACK_WARN, "bugpack", "no report of gap %s: %s", order->gap_key,
                    result->error.message);
    }
    bp_gaps_settle(pedantic->gaps, order->settled_context, is_written);
    (void)pthread_mutex_lock(&pedantic->mutex);
    pedantic->working_count--;
    feed(session, pedantic);
    (void)pthread_cond_broadcast(&pedantic->settled);
    (void)pthread_mutex_unlock(&pedantic->mutex);
}

void bp_pedantic_queue(bugpack *session, bp_order *order) {
    bp_pedantic *pedantic = session->pedantic;
    order->on_settled = settle;
    order->next = NULL;
    (void)pthread_mutex_lock(&pedantic->mutex);
    if (pedantic->first == NULL) {
        pedantic->first = order;
    } else {
        pedantic->last->next = order;
    }
    pedantic->last = order;
    feed(session, pedantic);
    (void)pthread_mutex_unlock(&pedantic->mutex);
}

void bp_pedantic_drain(bugpack *session) {
    bp_pedantic *pedantic = session->pedantic;
    if (pedantic == NULL) {
        return;
    }
    atomic_store(&pedantic->is_draining, true);
    (void)pthread_mutex_lock(&pedantic->mutex);
    while (pedantic->first != NULL || pedantic->working_count > 0) {
        (void)pthread_cond_wait(&pedantic->settled, &pedantic->mutex);
    }
    (void)pthread_mutex_unlock(&pedantic->mutex);
}

bool bp_pedantic_is_draining(const bugpack *session) {
    return atomic_load(&session->pedantic->is_draining);
}
