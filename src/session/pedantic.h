/*
 * Pedantic mode in a session: from a gap to its order, and from the order's end back to the gap.
 */
#ifndef BP_SESSION_PEDANTIC_H
#define BP_SESSION_PEDANTIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/gap.h>
#include <bugpack/report.h>

#include "model/manifest.h"
#include "report/bundle.h"
#include "trigger/gaps.h"

struct bugpack;
struct bp_order;

typedef struct bp_pedantic {
    bp_gaps *gaps;
    atomic_bool is_enabled;
    atomic_bool is_draining; /* no gap leads to a report any more */

    /* Orders that wait for a place in the worker's queue, oldest first, so that a burst of gaps
     * loses none and leaves room there for a person's. */
    pthread_mutex_t mutex;
    pthread_cond_t settled;
    struct bp_order *first, *last;
    unsigned working_count; /* handed to the worker and not settled */
    unsigned sent_count;    /* given to the freezer from the line, and not begun by it */
    uint64_t ahead_bytes;   /* what is frozen for those in the line takes on the disk, … */
    unsigned ahead_fds;     /* … and in descriptors */
} bp_pedantic;

/* How many of a line the freezer is given at a time: it has room for so many more. */
#define BP_PEDANTIC_SENT_MAX 16

/* Makes the table of gaps and checks pedantic_dir if the mode starts on. */
bugpack_status bp_pedantic_open(struct bugpack *session, bugpack_error *error);

/* Lets no more gaps lead to reports and waits until those that do are written or have failed, none
 * of them waiting for a sample window. The worker runs; the caller is not it. */
void bp_pedantic_drain(struct bugpack *session);

/* Writes the summary, if there was any gap. The worker has stopped; gaps may still be seen, and are
 * only counted. */
void bp_pedantic_close(struct bugpack *session);

/* Nobody sees a gap any more. */
void bp_pedantic_free(struct bugpack *session);

/* Whether the session ends, so that its pedantic reports should not take their time. */
bool bp_pedantic_is_draining(const struct bugpack *session);

/* Takes over an order that a gap made; in the end it is settled. Any thread. */
void bp_pedantic_queue(struct bugpack *session, struct bp_order *order);

/* To be called by the worker behind every order: one that waited for a place may have it now. */
void bp_pedantic_feed(struct bugpack *session);

/* Takes back all that wait for a place; they come to their end as others do. Whether there were
 * any. Any thread. */
bool bp_pedantic_cancel(struct bugpack *session);

/*
 * The two ends of a freezing, for the freezer. One that still waits for a place is frozen ahead of
 * it, so that its rings are those of the gap, as far as the bounds for all of them allow: then
 * `*ret_spare_bytes` is what must be left free on the disk. False: it goes back to the line, and
 * the freezer leaves it alone.
 */
bool bp_pedantic_begin_snapshot(struct bugpack *session, struct bp_order *order,
                                uint64_t *ret_spare_bytes);
bool bp_pedantic_end_snapshot(struct bugpack *session, struct bp_order *order);

/*
 * What gaps came to, for the ledger of `order`, one entry a key; its own key counts as written
 * (NULL: for none). The array is the caller's to free, texts are borrowed from the session. NULL
 * and 0 without any.
 */
bugpack_status bp_pedantic_list(struct bugpack *session, const struct bp_order *order,
                                bp_trigger_entry **ret_entries, size_t *ret_count,
                                bugpack_error *error);

/* Writes the summary beside the reports. Nothing without a gap. */
bugpack_status bp_pedantic_write_summary(struct bugpack *session, bugpack_error *error);

/* channel-state.json as the host gave it at the gap. */
typedef struct bp_pedantic_state bp_pedantic_state;

/* Asks the host, on the calling thread, for the state of this order's channel. */
bugpack_status bp_pedantic_ask_state(struct bugpack *session, struct bp_order *order,
                                     bugpack_provider *provider, void *context);
/* NULL is fine. */
void bp_pedantic_state_free(bp_pedantic_state *state);

/* Whether the order has such a state, which stands for the registered provider `name`. */
bool bp_pedantic_state_replaces(const struct bp_order *order, const char *name);

/* Adds it to the report, checked and indented. Nothing where the order has none. Worker only. */
bugpack_status bp_pedantic_state_add(struct bp_order *order, bp_bundle *bundle,
                                     bugpack_error *error);

#endif
