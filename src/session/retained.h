/*
 * Rings that are kept as they were when the host told its user something, for a report that the
 * user may file a while later.
 *
 * What is kept is an order that only the freezer gets: it has the instant, the window of the
 * history and the rings. A report borrows them; one that fails gives them back, so that it can be
 * tried again until they expire.
 */
#ifndef BP_SESSION_RETAINED_H
#define BP_SESSION_RETAINED_H

#include <stdint.h>

#include <bugpack/error.h>

#include "trigger/timer.h"

struct bugpack;
struct bp_order;

typedef struct bp_retained bp_retained;
typedef struct bp_retained_list bp_retained_list;

/* `timer` is borrowed; it ticks bp_retained_expire. NO_MEMORY. */
bugpack_status bp_retained_new(bp_timer *timer, bp_retained_list **ret_list, bugpack_error *error);

/* When no order is left that borrows, and the freezer has stopped. NULL is fine. */
void bp_retained_free(bp_retained_list *list);

/* Drops what has expired, and says when the next one will; UINT64_MAX: none. For the timer. */
uint64_t bp_retained_expire(bp_retained_list *list, uint64_t now_ns);

/*
 * Makes `order` one of the kind notification that borrows what is kept under `number`, and the
 * instant and the window with it. INVALID when it is not kept any more, or lent already. Its
 * on_settled drops what was kept once the report is written. Any thread.
 */
bugpack_status bp_retained_lend(struct bugpack *session, uint64_t number, struct bp_order *order);

/* The freezer's part for an order that borrows: hands it the rings, or tells why there are none. */
bugpack_status bp_retained_hand_over(struct bp_order *order, bugpack_error *error);

/* The freezer's part for what is kept itself: the order is frozen, or has failed. */
void bp_retained_settle(struct bugpack *session, struct bp_order *order);

/* The end of a loan; for an order that borrows. */
void bp_retained_give_back(struct bp_order *order);

#endif
