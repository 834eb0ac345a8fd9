/*
 * The time that runtime-metrics.json is about: from a first sample to a second one, or the window
 * of the history that ended at the trigger. Worker only.
 */
#ifndef BP_SESSION_WINDOW_H
#define BP_SESSION_WINDOW_H

#include <stdint.h>

#include <bugpack/error.h>

#include "report/bundle.h"
#include "session/order.h"

struct bugpack;

typedef struct bp_window {
    bugpack_status status; /* of the first sample; when it is not OK, `error` says why */
    uint64_t began_ns;
    bugpack_error error;
} bp_window;

/* Takes the first sample, unless the order brings a window that has passed already. */
void bp_window_begin(struct bugpack *session, const bp_order *order, bp_window *ret_window);

/* Waits for the rest of the time between the samples, or until the order is cancelled. */
void bp_window_wait(struct bugpack *session, bp_order *order, const bp_window *window);

/* Takes the second sample and adds runtime-metrics.json, which says why when there are none. */
bugpack_status bp_window_add(struct bugpack *session, const bp_order *order,
                             const bp_window *window, bp_bundle *bundle, bugpack_error *error);

#endif
