/*
 * The orders on their way, from the trigger to the result: what can be joined, what can be taken
 * back, and who is told how they ended.
 */
#ifndef BP_SESSION_LIVE_H
#define BP_SESSION_LIVE_H

#include <stdbool.h>
#include <stdint.h>

#include "session/order.h"

/* What became of an order that was handed in. */
typedef enum bp_live_entry {
    BP_LIVE_ACCEPTED, /* it is the worker's, which waits for it to be snapshot */
    BP_LIVE_JOINED,   /* it gets the result of another one, which owns it now */
    BP_LIVE_REFUSED   /* it is the caller's still; the status says why */
} bp_live_entry;

/*
 * Gives an order its ticket (`*ret_ticket`: that of the other one when it joined) and hands it to
 * the worker, or does with it what the option when_busy says. BUSY, CLOSED. Any thread.
 */
bp_live_entry bp_live_enter(struct bugpack *session, bp_order *order, uint64_t *ret_ticket,
                            bugpack_status *ret_status, bugpack_error *error);

/* Takes the report, or does not begin it when it was cancelled in the queue; tells everybody how it
 * ended, and frees it with all that joined it. Worker only. */
void bp_live_run(struct bugpack *session, bp_order *order);

/* Ends what was cancelled while it waited behind the report under way. Worker only, anywhere. */
void bp_live_end_cancelled(struct bugpack *session);

#endif
