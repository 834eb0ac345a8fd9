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
 * Bounds for what is frozen for gaps that wait: of a host's descriptors, of which it may have 1024
 * in all, and of the disk, on which so much must be left for others once more.
 */
static const unsigned ahead_max_fds = 64;
static const uint64_t ahead_max_bytes = (uint64_t)256 << 20;

static bool has_room_ahead(const bp_pedantic *pedantic) {
    return pedantic->ahead_bytes < ahead_max_bytes && pedantic->ahead_fds < ahead_max_fds;
}

/* Gives the freezer those of the line that are not with it, as long as there is room. The mutex is
 * held. */
static void freeze_ahead(bugpack *session, bp_pedantic *pedantic) {
    for (bp_order *order = pedantic->first;
         order != NULL && has_room_ahead(pedantic) && pedantic->sent_count < BP_PEDANTIC_SENT_MAX;
         order = order->next) {
        if (!order->is_with_snapshotter) {
            order->is_with_snapshotter =
                bp_worker_submit(session->snapshotter, order) == BUGPACK_OK;
            order->was_sent_ahead = order->is_with_snapshotter;
            pedantic->sent_count += order->is_with_snapshotter;
        }
    }
}

/* What it holds counts for the line, or no more. The mutex is held. */
static void set_waiting(bp_pedantic *pedantic, bp_order *order, bool is_waiting) {
    order->is_waiting = is_waiting;
    if (is_waiting) {
        pedantic->ahead_bytes += order->ahead_bytes;
        pedantic->ahead_fds += order->ahead_fds;
    } else {
        pedantic->ahead_bytes -= order->ahead_bytes;
        pedantic->ahead_fds -= order->ahead_fds;
    }
}

/*
 * Hands over what there is room for. The mutex is held, also over the handing over: when the queue
 * is full of others, one of them is yet to end, and feeds again behind itself.
 */
static void feed(bugpack *session, bp_pedantic *pedantic) {
    while (pedantic->first != NULL && pedantic->working_count < worker_share) {
        bp_order *order = pedantic->first;
        bp_order *next = order->next;
        set_waiting(pedantic, order, false);
        if (bp_order_offer(session, order, NULL, NULL) != BUGPACK_OK) {
            set_waiting(pedantic, order, true);
            break;
        }
        pedantic->first = next;
        pedantic->working_count++;
    }
    freeze_ahead(session, pedantic);
}

bool bp_pedantic_begin_snapshot(bugpack *session, bp_order *order, uint64_t *ret_spare_bytes) {
    bp_pedantic *pedantic = session->pedantic;
    bool may_freeze = true;
    (void)pthread_mutex_lock(&pedantic->mutex);
    if (order->was_sent_ahead) {
        order->was_sent_ahead = false;
        pedantic->sent_count--;
    }
    if (order->is_waiting) {
        *ret_spare_bytes = 2 * ahead_max_bytes;
        may_freeze = order->is_with_snapshotter = has_room_ahead(pedantic);
    }
    (void)pthread_mutex_unlock(&pedantic->mutex);
    return may_freeze;
}

bool bp_pedantic_end_snapshot(bugpack *session, bp_order *order) {
    bp_pedantic *pedantic = session->pedantic;
    bool is_back = false;
    (void)pthread_mutex_lock(&pedantic->mutex);
    bool is_whole = order->snapshot_status == BUGPACK_OK && bp_snapshot_is_whole(order->snapshot);
    if (order->is_waiting && !is_whole) {
        /* It may be better when it is its turn: then others hold nothing any more. */
        bp_job_drop_snapshot(order);
        order->is_with_snapshotter = false;
        is_back = true;
    } else if (order->is_waiting) {
        order->ahead_bytes = bp_snapshot_bytes(order->snapshot);
        order->ahead_fds = bp_snapshot_fds(order->snapshot) + 1; /* and the directory's */
        set_waiting(pedantic, order, true);
    }
    (void)pthread_mutex_unlock(&pedantic->mutex);
    return !is_back;
}

bool bp_pedantic_cancel(bugpack *session) {
    bp_pedantic *pedantic = session->pedantic;
    (void)pthread_mutex_lock(&pedantic->mutex);
    for (bp_order *order = pedantic->first; order != NULL; order = order->next) {
        atomic_store(&order->token.is_cancelled, true);
    }
    bool was_any = pedantic->first != NULL;
    (void)pthread_mutex_unlock(&pedantic->mutex);
    return was_any;
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
        bugpack_log(session, BUGPACK_LEVEL_WARN, "bugpack", "no report of gap %s: %s",
                    order->gap_key, result->error.message);
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
    order->is_waiting = true;
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
