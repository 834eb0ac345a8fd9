#include "session/order.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "session/disconnect.h"
#include "session/limits.h"
#include "session/live.h"
#include "session/pedantic.h"
#include "session/retained.h"
#include "session/session.h"

void bp_order_free(bp_order *order) {
    if (order == NULL) {
        return;
    }
    if (order->kept != NULL) {
        bp_retained_give_back(order);
    } else {
        bp_history_held_release(&order->window);
        if (order->snapshot != NULL) {
            bp_snapshot_release(order->snapshot);
            free(order->snapshot);
        }
    }
    bp_cause_free(order->cause);
    bp_destination_release(&order->destination);
    bp_screenshot_free(order->screenshot);
    bp_pedantic_state_free(order->state);
    char *texts[] = {order->description, order->channel, order->gap_key, order->name_detail,
                     order->output_path};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        free(texts[i]);
    }
    free(order);
}

bool bp_order_copy_text(const char *text, char **ret_copy) {
    *ret_copy = text == NULL ? NULL : strdup(text);
    return text == NULL || *ret_copy != NULL;
}

/* A window that ended longer ago says too little of now: the pulse slows down where it is
 * expensive. */
static uint64_t history_max_age_ns(const bugpack *session) {
    return 5 * session->options.history_interval_ms * BP_NS_PER_MS;
}

bp_order *bp_order_new(bugpack *session, bp_report_kind kind) {
    bp_order *order = calloc(1, sizeof *order);
    if (order == NULL) {
        return NULL;
    }
    order->kind = kind;
    order->triggered = bp_clock_now();
    order->destination = (bp_destination)BP_DESTINATION_INIT;
    bp_history *history = bp_recorder_history(session->recorder);
    order->has_window =
        history != NULL && bp_history_hold(history, order->triggered.monotonic_ns,
                                           history_max_age_ns(session), &order->window);
    return order;
}

/* Wakes the worker if it waits for this order. */
static void end_snapshot(bugpack *session, bp_order *order) {
    (void)pthread_mutex_lock(&session->orders_mutex);
    order->is_snapshotted = true;
    (void)pthread_cond_broadcast(&session->orders_changed);
    (void)pthread_mutex_unlock(&session->orders_mutex);
}

bugpack_status bp_order_submit(bugpack *session, bp_order *order, uint64_t *ret_ticket,
                               bugpack_error *error) {
    bugpack_status status = bp_order_offer(session, order, ret_ticket, error);
    if (status != BUGPACK_OK) {
        bp_order_free(order);
    }
    return status;
}

bugpack_status bp_order_offer(bugpack *session, bp_order *order, uint64_t *ret_ticket,
                              bugpack_error *error) {
    uint64_t ticket = 0;
    bugpack_status status;
    bool is_with_snapshotter =
        order->is_with_snapshotter; /* once accepted, the order may be gone */
    bp_live_entry entry = bp_live_enter(session, order, &ticket, &status, error);
    if (entry == BP_LIVE_REFUSED) {
        return status;
    }
    if (ret_ticket != NULL) {
        *ret_ticket = ticket;
    }
    /* An accepted order is the worker's, which waits for it to be frozen. The freezer has room for
     * all that the worker has accepted. */
    if (entry == BP_LIVE_ACCEPTED && !is_with_snapshotter &&
        bp_worker_submit(session->snapshotter, order) != BUGPACK_OK) {
        order->snapshot_status =
            bp_fail(&order->snapshot_error, BUGPACK_ERR_CLOSED, "the session is being closed");
        end_snapshot(session, order);
    }
    return BUGPACK_OK;
}

static bugpack_status check_room(const bugpack *session, const bp_order *order,
                                 uint64_t needed_bytes, bugpack_error *error) {
    return bp_limits_check_room(&session->options, order->destination.dir_fd,
                                order->destination.dir_path, needed_bytes, error);
}

static bugpack_status copy_rings(bugpack *session, bp_order *order, bugpack_error *error) {
    order->snapshot = calloc(1, sizeof *order->snapshot);
    if (order->snapshot == NULL) {
        return bp_fail_memory(error, "take a report");
    }
    bp_recorder_take_snapshot(session->recorder, order->only_channel, order->triggered.monotonic_ns,
                              order->destination.dir_fd, &order->token, order->snapshot);
    return BUGPACK_OK;
}

/* `spare_bytes` must be free besides. */
static bugpack_status freeze(bugpack *session, bp_order *order, uint64_t spare_bytes,
                             bugpack_error *error) {
    bugpack_status status = bp_cancel_check(&order->token, error);
    if (status == BUGPACK_OK) {
        status = bp_destination_open(&session->options, order, &order->destination, error);
    }
    if (status == BUGPACK_OK) {
        status = check_room(session, order, spare_bytes, error);
    }
    if (status != BUGPACK_OK) {
        return status;
    }
    status = order->kept != NULL ? bp_retained_hand_over(order, error)
                                 : copy_rings(session, order, error);
    /* The zip may become as large as what it is made of. */
    return status == BUGPACK_OK
               ? check_room(session, order, bp_snapshot_bytes(order->snapshot), error)
               : status;
}

void bp_job_drop_snapshot(bp_order *order) {
    if (order->snapshot != NULL) {
        bp_snapshot_release(order->snapshot);
        free(order->snapshot);
        order->snapshot = NULL;
    }
    bp_destination_release(&order->destination);
    order->destination = (bp_destination)BP_DESTINATION_INIT;
    order->snapshot_error = (bugpack_error)BUGPACK_ERROR_INIT;
    order->snapshot_status = BUGPACK_OK;
}

void bp_job_snapshot(void *job, void *context) {
    bugpack *session = context;
    bp_order *order = job;
    uint64_t spare_bytes = 0;
    bool is_of_gap = order->kind == BP_REPORT_PEDANTIC;
    if (is_of_gap && !bp_pedantic_begin_snapshot(session, order, &spare_bytes)) {
        return;
    }
    order->snapshot_status = freeze(session, order, spare_bytes, &order->snapshot_error);
    if (order->keeper != NULL) {
        bp_retained_settle(session, order);
    } else if (!is_of_gap || bp_pedantic_end_snapshot(session, order)) {
        end_snapshot(session, order);
    }
}

void bp_job_wait_snapshotted(bugpack *session, bp_order *order) {
    (void)pthread_mutex_lock(&session->orders_mutex);
    while (!order->is_snapshotted) {
        (void)pthread_cond_wait(&session->orders_changed, &session->orders_mutex);
    }
    (void)pthread_mutex_unlock(&session->orders_mutex);
}
