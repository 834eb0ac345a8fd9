/*
 * What a session tells its host of a report on its way: the callback, and the queue behind the
 * descriptor.
 */
#ifndef BP_SESSION_EVENTS_H
#define BP_SESSION_EVENTS_H

#include <stdbool.h>

#include <bugpack/events.h>

#include "session/order.h"

/* Whether anybody listens. */
bool bp_events_are_heard(struct bugpack *session);

/* Tells one event of an order; `result` is NULL until there is one. Worker only: the host's
 * callback runs in it. */
void bp_events_tell(struct bugpack *session, const bp_order *order, bugpack_event_kind kind,
                    const bugpack_report_result *result);

/* Told like a report of this session, with ticket 0: one that was made of a dead session. */
void bp_events_tell_recovered(struct bugpack *session, const bugpack_report_result *result);

void bp_events_release(struct bugpack *session);

#endif
