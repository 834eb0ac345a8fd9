#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/lock.h"
#include "base/status.h"
#include "recorder/recorder.h"
#include "trigger/trigger.h"

struct retained_list {
    const bp_report_context *context;
    bp_lock lock; /* of what follows */
    uint64_t last_number;
    unsigned pending_count; /* snapshots that are not done */
    size_t count;
    bp_retained *slots[BUGPACK_RETAINED_MAX]; /* the oldest first */
    bp_retained *unused; /* freed by a thread of ours: closing a large file takes milliseconds */
};

struct bp_retained {
    struct retained_list *list;
    bp_job *job;
    uint64_t number, expires_ns;
    /* Under the list's mutex. The list, the snapshot thread and a loan hold a reference each. */
    unsigned reference_count;
    const bp_job *lent_to; /* NULL: nobody has it */
    bp_retained *next_unused;
};

static bugpack_status open_trigger(const bp_report_context *context, void **ret_self,
                                   bugpack_error *error) {
    struct retained_list *list = calloc(1, sizeof *list);
    if (list == NULL) {
        return bp_fail_memory(error, "open a session");
    }
    bp_lock_init(&list->lock, BP_LOCK_RETAINED);
    list->context = context;
    *ret_self = list;
    return BUGPACK_OK;
}

/* Gives one reference back. The lock is held. */
static void drop(bp_retained *retained) {
    if (--retained->reference_count == 0) {
        retained->next_unused = retained->list->unused;
        retained->list->unused = retained;
    }
}

/* Takes one out of its slot. The lock is held. */
static void remove_slot(struct retained_list *list, size_t slot) {
    bp_retained *retained = list->slots[slot];
    list->count--;
    memmove(&list->slots[slot], &list->slots[slot + 1],
            (list->count - slot) * sizeof list->slots[0]);
    drop(retained);
}

static void remove_retained(struct retained_list *list, const bp_retained *retained) {
    for (size_t i = 0; i < list->count; i++) {
        if (list->slots[i] == retained) {
            remove_slot(list, i);
            return;
        }
    }
}

/* All expire after the same time, so the first slot expires first. The lock is held. */
static void remove_expired(struct retained_list *list, uint64_t now_ns) {
    while (list->count > 0 && list->slots[0]->expires_ns <= now_ns) {
        remove_slot(list, 0);
    }
}

/* Frees what nobody refers to, without the lock. On threads of ours only. */
static void free_unused(struct retained_list *list) {
    bp_lock_acquire(&list->lock);
    bp_retained *unused = list->unused;
    list->unused = NULL;
    bp_lock_release(&list->lock);
    while (unused != NULL) {
        bp_retained *next = unused->next_unused;
        bp_job_free(unused->job);
        free(unused);
        unused = next;
    }
}

static void close_trigger(void *self) {
    struct retained_list *list = self;
    remove_expired(list, UINT64_MAX);
    free_unused(list);
    bp_lock_destroy(&list->lock);
    free(list);
}

static uint64_t tick(void *self, uint64_t now_ns) {
    struct retained_list *list = self;
    bp_lock_acquire(&list->lock);
    remove_expired(list, now_ns);
    uint64_t next_ns = list->count > 0 ? list->slots[0]->expires_ns : UINT64_MAX;
    bp_lock_release(&list->lock);
    free_unused(list);
    return next_ns;
}

/* The snapshot is done, or there is none. */
static void end_snapshot(bp_retained *retained, bool is_good) {
    struct retained_list *list = retained->list;
    bp_lock_acquire(&list->lock);
    list->pending_count--;
    if (!is_good) {
        remove_retained(list, retained);
    }
    drop(retained);
    bp_lock_release(&list->lock);
}

static void snapshotted(bp_job *job) {
    bp_retained *retained = job->payload;
    struct retained_list *list = retained->list;
    bool is_good = job->snapshot_error.status == BUGPACK_OK;
    if (!is_good) {
        bp_note_log(list->context->recorder, BUGPACK_LEVEL_WARN,
                    "the rings of a notification are not kept: %s", job->snapshot_error.message);
    }
    end_snapshot(retained, is_good);
    free_unused(list);
    bp_monitor_wake(list->context->monitor); /* which has to know when it expires */
}

static const bp_job_type retained_type = {.kind = BP_REPORT_NOTIFICATION,
                                          .snapshotted = snapshotted};

uint64_t bp_retained_add(void *self) {
    struct retained_list *list = self;
    bp_retained *retained = calloc(1, sizeof *retained);
    if (retained == NULL) {
        return 0;
    }
    bp_job *job = bp_job_new(list->context, &retained_type, 0);
    if (job == NULL) {
        free(retained);
        return 0;
    }
    job->payload = retained;
    *retained = (bp_retained){.list = list,
                              .job = job,
                              .expires_ns = job->triggered.monotonic_ns +
                                            BUGPACK_RETAINED_SECONDS * BP_NS_PER_SEC};
    uint64_t number = 0;
    bp_lock_acquire(&list->lock);
    if (list->pending_count < BUGPACK_RETAINED_MAX) { /* else the snapshot thread is behind */
        remove_expired(list, bp_clock_monotonic_ns());
        if (list->count == BUGPACK_RETAINED_MAX) {
            remove_slot(list, 0);
        }
        list->slots[list->count++] = retained;
        list->pending_count++;
        retained->reference_count = 2; /* the list's and the snapshot thread's */
        retained->number = number = ++list->last_number;
    }
    bp_lock_release(&list->lock);
    if (number == 0) {
        bp_job_free(job);
        free(retained);
    } else if (bp_job_queue_submit(list->context->jobs, job, NULL, NULL) != BUGPACK_OK) {
        retained->job = NULL; /* it is freed */
        end_snapshot(retained, false);
        number = 0;
    }
    return number;
}

bugpack_status bp_retained_lend(void *self, uint64_t number, bp_job *job, bp_retained **ret_loan,
                                bugpack_error *error) {
    struct retained_list *list = self;
    bp_retained *found = NULL;
    bp_lock_acquire(&list->lock);
    remove_expired(list, bp_clock_monotonic_ns());
    for (size_t i = 0; i < list->count && found == NULL; i++) {
        if (list->slots[i]->number == number && list->slots[i]->lent_to == NULL) {
            found = list->slots[i];
            found->lent_to = job;
            found->reference_count++;
        }
    }
    bp_lock_release(&list->lock);
    if (found == NULL) {
        return bp_fail(error, BUGPACK_ERR_NO_TICKET,
                       "retained: no snapshot with the ticket %" PRIu64 " is free", number);
    }
    job->triggered = found->job->triggered;
    bp_job_drop_notes(job);
    memcpy(job->notes, found->job->notes, sizeof job->notes);
    bp_tag_set_drop(job->tags);
    job->tags = bp_tag_set_retain(found->job->tags);
    bp_window_release(job->window);
    job->window = bp_window_retain(found->job->window);
    *ret_loan = found;
    return BUGPACK_OK;
}

/* The snapshot was submitted before its number was known, so it is done by now. */
bugpack_status bp_retained_take_snapshot(bp_retained *loan, bp_job *job, bugpack_error *error) {
    const bp_job *from = loan->job;
    if (from->snapshot_error.status != BUGPACK_OK) {
        *error = from->snapshot_error;
        return error->status;
    }
    job->snapshot = from->snapshot;
    job->snapshot->token = &job->token;
    return BUGPACK_OK;
}

/* The loan is over, and another job may have the snapshot. The lock is held. */
static void end_loan(bp_retained *loan) {
    loan->lent_to = NULL;
    if (loan->job->snapshot != NULL) {
        loan->job->snapshot->token = NULL; /* it was the borrower's */
    }
}

void bp_retained_settled(bp_retained *loan, const bugpack_report_result *result) {
    struct retained_list *list = loan->list;
    bp_lock_acquire(&list->lock);
    if (result->status == BUGPACK_OK) {
        remove_retained(list, loan);
    } else {
        end_loan(loan); /* before the host is told, which may try again at once */
    }
    bp_lock_release(&list->lock);
}

void bp_retained_give_back(bp_retained *loan, const bp_job *job) {
    struct retained_list *list = loan->list;
    bp_lock_acquire(&list->lock);
    if (loan->lent_to == job) {
        end_loan(loan);
    }
    drop(loan);
    bp_lock_release(&list->lock);
    bp_monitor_wake(list->context->monitor);
}

const bp_trigger bp_trigger_retained = {.open = open_trigger, .tick = tick, .close = close_trigger};
