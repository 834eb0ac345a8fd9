/*
 * An order: a trigger on its way to its report. It is made on the thread that triggered, which
 * waits for nothing; what must be of that instant is fixed there (the time, the window of the
 * history). Then the freezer copies the rings, at once, also while the worker is busy with another
 * report; and the worker takes the report.
 */
#ifndef BP_SESSION_ORDER_H
#define BP_SESSION_ORDER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <bugpack/report.h>

#include "base/cancel.h"
#include "base/clock.h"
#include "model/metadata.h"
#include "recorder/history.h"
#include "recorder/snapshot.h"
#include "session/destination.h"
#include "session/screenshot.h"

struct bugpack;
typedef struct bp_order bp_order;

/*
 * Told on the worker's thread how an order ended, before the host is: for what waits on it inside
 * the session. The result is bugpack's own copy.
 */
typedef void bp_order_settled(struct bugpack *session, const bp_order *order,
                              const bugpack_report_result *result);

struct bp_order {
    uint64_t ticket;  /* 1, 2, … in the session; 0 until it is submitted */
    bool is_recovery; /* no report of ours, but those of dead sessions of this app */
    bp_report_kind kind;
    bp_instant triggered;
    bool has_window; /* the history had one at the trigger */
    bp_history_held window;
    bp_cancel_token token; /* asked by whoever works on it; set by bugpack_cancel */
    bool is_manual;        /* a person or the API asked: the option when_busy is for it */
    bool may_be_shared;    /* nothing in it is its own, so that one report can serve several */
    bp_order *next_live;   /* in the session's list, or among those that joined the same one */
    bp_order *joined;      /* get its result too; under the session's orders_mutex */
    uint32_t percent;      /* the worker's: how far it is */
    char *description;
    char *channel;
    char *gap_key;
    char *name_detail;          /* of the file's name; NULL for none */
    const char *only_channel;   /* borrowed from this order: whose traffic; NULL: of all */
    char *output_path;          /* absolute; NULL for a name of ours in report_dir */
    bp_screenshot *screenshot;  /* NULL for none */
    const char *report_dir;     /* borrowed from the session's options; NULL means its report_dir */
    bool makes_report_dir;      /* that one may be missing: it is bugpack's own choice */
    struct bp_cause *cause;     /* of a disconnect; NULL for the other kinds */
    struct bp_retained *kept;   /* borrowed from there: window and rings; NULL: they are its own */
    struct bp_retained *keeper; /* an order that is only snapshot and kept: session/retained.h */
    bugpack_report_done *on_done;
    void *on_done_context;
    bp_order_settled *on_settled;
    void *settled_context;
    struct bp_pedantic_state
        *state;               /* what the host said at the gap; NULL: its provider is asked */
    struct bp_order *next;    /* of those that wait for a place in the worker's queue */
    bool is_waiting;          /* it is one of them; under their mutex, as is what follows */
    bool is_with_snapshotter; /* it was given to it, and is or will be snapshot, … */
    bool was_sent_ahead;      /* … and was given while it waited, and is not begun */
    uint64_t ahead_bytes;     /* what its rings take on the disk while it waits, … */
    unsigned ahead_fds;       /* … in so many descriptors */

    /* Filled by the freezer; the worker looks at it once is_snapshotted is true. */
    bool is_snapshotted; /* under the session's orders_mutex */
    bugpack_status snapshot_status;
    bugpack_error snapshot_error;
    bp_destination destination;
    bp_snapshot *snapshot;
};

/* An order of this instant, with the window that the history has of it. NULL without memory. */
bp_order *bp_order_new(struct bugpack *session, bp_report_kind kind);
void bp_order_free(bp_order *order);

/* Copies a text into a field of an order; NULL stays NULL. False without memory. */
bool bp_order_copy_text(const char *text, char **ret_copy);

/*
 * Gives it its ticket and hands it to the freezer and the worker, which own it from then on. On a
 * failure (BUSY, CLOSED) it is freed. `ret_ticket` and `error` are optional. Any thread.
 */
bugpack_status bp_order_submit(struct bugpack *session, bp_order *order, uint64_t *ret_ticket,
                               bugpack_error *error);

/* The same, but on a failure the order stays the caller's, to be submitted again or freed. */
bugpack_status bp_order_offer(struct bugpack *session, bp_order *order, uint64_t *ret_ticket,
                              bugpack_error *error);

/* The freezer's job: opens the destination and copies the rings into it. An order of a gap that
 * still waits may go back to its line as it was, to be given again later. */
void bp_job_snapshot(void *order, void *session);

/* Undoes it, for an order that only the caller has. */
void bp_job_drop_snapshot(bp_order *order);

/* Waits until it is frozen. Worker only. */
void bp_job_wait_snapshotted(struct bugpack *session, bp_order *order);

#endif
