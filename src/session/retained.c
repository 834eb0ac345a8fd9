#include "session/retained.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "session/session.h"

struct bp_retained {
    bp_retained_list *list;
    bp_order *order;
    uint64_t number, expires_ns;
    /* Under the list's mutex. The list, the freezer's job and a loan hold it. */
    unsigned reference_count;
    const bp_order *lent_to; /* NULL: nobody has it */
    bp_retained *next_dead;
};

struct bp_retained_list {
    bp_timer *timer;       /* drops in time what is to go */
    pthread_mutex_t mutex; /* of what follows */
    uint64_t last_number;
    unsigned pending_count; /* jobs that the freezer has not done yet */
    size_t count;
    bp_retained *slots[BUGPACK_RETAINED_MAX]; /* the oldest first */
    bp_retained
        *dead; /* to be freed by a thread of ours: closing a large temp_file takes milliseconds */
};

bugpack_status bp_retained_new(bp_timer *timer, bp_retained_list **ret_list, bugpack_error *error) {
    bp_retained_list *list = calloc(1, sizeof *list);
    if (list == NULL || pthread_mutex_init(&list->mutex, NULL) != 0) {
        free(list);
        return bp_fail_memory(error, "open a session");
    }
    list->timer = timer;
    *ret_list = list;
    return BUGPACK_OK;
}

/* Lets go of one reference; the last one lays it with the dead. The mutex is held. */
static void drop(bp_retained *kept) {
    if (--kept->reference_count == 0) {
        kept->next_dead = kept->list->dead;
        kept->list->dead = kept;
    }
}

/* Takes one out of its slot. The mutex is held. */
static void remove_slot(bp_retained_list *list, size_t slot) {
    bp_retained *kept = list->slots[slot];
    list->count--;
    memmove(&list->slots[slot], &list->slots[slot + 1],
            (list->count - slot) * sizeof list->slots[0]);
    drop(kept);
}

static void remove_kept(bp_retained_list *list, const bp_retained *kept) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->slots[i] == kept) {
            remove_slot(list, i);
            return;
        }
    }
}

/* The mutex is held. They all live equally long, so the first is the first to go. */
static void remove_expired(bp_retained_list *list, uint64_t now_ns) {
    while (list->count > 0 && list->slots[0]->expires_ns <= now_ns) {
        remove_slot(list, 0);
    }
}

/* Frees the dead, without the mutex. On threads of ours only. */
static void bury(bp_retained_list *list) {
    (void)pthread_mutex_lock(&list->mutex);
    bp_retained *dead = list->dead;
    list->dead = NULL;
    (void)pthread_mutex_unlock(&list->mutex);
    while (dead != NULL) {
        bp_retained *next = dead->next_dead;
        bp_order_free(dead->order);
        free(dead);
        dead = next;
    }
}

void bp_retained_free(bp_retained_list *list) {
    if (list != NULL) {
        remove_expired(list, UINT64_MAX);
        bury(list);
        (void)pthread_mutex_destroy(&list->mutex);
        free(list);
    }
}

uint64_t bp_retained_expire(bp_retained_list *list, uint64_t now_ns) {
    (void)pthread_mutex_lock(&list->mutex);
    remove_expired(list, now_ns);
    uint64_t next_ns = list->count > 0 ? list->slots[0]->expires_ns : UINT64_MAX;
    (void)pthread_mutex_unlock(&list->mutex);
    bury(list);
    return next_ns;
}

/* Gives it a slot, where the freezer has not enough to do already. Its number, or 0. */
static uint64_t enlist(bp_retained_list *list, bp_retained *kept) {
    uint64_t number = 0;
    (void)pthread_mutex_lock(&list->mutex);
    if (list->pending_count < BUGPACK_RETAINED_MAX) {
        remove_expired(list, bp_clock_monotonic_ns());
        if (list->count == BUGPACK_RETAINED_MAX) {
            remove_slot(list, 0);
        }
        list->slots[list->count++] = kept;
        list->pending_count++;
        kept->reference_count = 2; /* the list's and the job's */
        kept->number = number = ++list->last_number;
    }
    (void)pthread_mutex_unlock(&list->mutex);
    return number;
}

/* The freezer's job is done, or there is none. */
static void end_job(bp_retained *kept, bool is_kept) {
    bp_retained_list *list = kept->list;
    (void)pthread_mutex_lock(&list->mutex);
    list->pending_count--;
    if (!is_kept) {
        remove_kept(list, kept);
    }
    drop(kept);
    (void)pthread_mutex_unlock(&list->mutex);
}

static uint64_t keep(bugpack *session) {
    bp_retained *kept = calloc(1, sizeof *kept);
    bp_order *order = bp_order_new(session, BP_REPORT_NOTIFICATION);
    if (kept == NULL || order == NULL) {
        free(kept);
        bp_order_free(order);
        return 0;
    }
    *kept = (bp_retained){.list = session->kept,
                          .order = order,
                          .expires_ns = order->triggered.monotonic_ns +
                                        BUGPACK_RETAINED_SECONDS * BP_NS_PER_SEC};
    order->keeper = kept;
    uint64_t number = enlist(session->kept, kept);
    if (number == 0) {
        bp_order_free(order);
        free(kept);
        return 0;
    }
    if (bp_worker_submit(session->snapshotter, order) != BUGPACK_OK) {
        end_job(kept, false);
        return 0;
    }
    return number;
}

uint64_t bugpack_notify_retain(bugpack *session, bugpack_level level, const char *source,
                               const char *format, ...) {
    bp_guard_entry entry;
    if (bp_session_enter(session, &entry) != BUGPACK_OK) {
        return 0;
    }
    va_list arguments;
    va_start(arguments, format);
    bp_session_notify(session, level, source, format, arguments);
    va_end(arguments);
    uint64_t number = keep(session);
    bp_session_leave(&entry);
    return number;
}

void bp_retained_settle(bugpack *session, bp_order *order) {
    bp_retained *kept = order->keeper;
    bool is_kept = order->snapshot_status == BUGPACK_OK;
    if (!is_kept) {
        bugpack_log(session, BUGPACK_LEVEL_WARN, "bugpack",
                    "the rings of a notification are not kept: %s", order->snapshot_error.message);
    }
    end_job(kept, is_kept);
    bury(session->kept);
    /* Without a thread that drops it in time it goes with the next call, or the session. */
    (void)bp_timer_start(session->kept->timer, NULL);
}

static void settle_loan(bugpack *session, const bp_order *order,
                        const bugpack_report_result *result) {
    (void)pthread_mutex_lock(&session->kept->mutex);
    if (result->status == BUGPACK_OK) {
        remove_kept(session->kept, order->kept);
    } else {
        order->kept->lent_to = NULL; /* before the host is told, which may try again at once */
    }
    (void)pthread_mutex_unlock(&session->kept->mutex);
}

bugpack_status bp_retained_lend(bugpack *session, uint64_t number, bp_order *order) {
    bp_retained_list *list = session->kept;
    bp_retained *found = NULL;
    (void)pthread_mutex_lock(&list->mutex);
    remove_expired(list, bp_clock_monotonic_ns());
    for (size_t i = 0; i < list->count && found == NULL; i++) {
        if (list->slots[i]->number == number && list->slots[i]->lent_to == NULL) {
            found = list->slots[i];
            found->lent_to = order;
            found->reference_count++;
        }
    }
    (void)pthread_mutex_unlock(&list->mutex);
    if (found == NULL) {
        return BUGPACK_ERR_INVALID;
    }
    bp_history_held_release(&order->window);
    order->kept = found;
    order->kind = BP_REPORT_NOTIFICATION;
    order->triggered = found->order->triggered;
    order->has_window = found->order->has_window;
    order->window = found->order->window;
    order->on_settled = settle_loan;
    return BUGPACK_OK;
}

/* What is kept was given to the freezer before its number was known, so it is done with it. */
bugpack_status bp_retained_hand_over(bp_order *order, bugpack_error *error) {
    const bp_order *from = order->kept->order;
    if (from->snapshot_status != BUGPACK_OK) {
        *error = from->snapshot_error;
        return from->snapshot_status;
    }
    order->snapshot = from->snapshot;
    order->snapshot->token = &order->token;
    return BUGPACK_OK;
}

void bp_retained_give_back(bp_order *order) {
    bp_retained *kept = order->kept;
    bp_retained_list *list = kept->list;
    if (order->snapshot != NULL) {
        order->snapshot->token = NULL; /* it was the borrower's */
    }
    (void)pthread_mutex_lock(&list->mutex);
    if (kept->lent_to == order) {
        kept->lent_to = NULL;
    }
    drop(kept);
    (void)pthread_mutex_unlock(&list->mutex);
    bp_timer_wake(list->timer);
}
