/*
 * Disconnects: one report, and then a cool-down.
 */
#ifndef BP_SESSION_DISCONNECT_H
#define BP_SESSION_DISCONNECT_H

#include <bugpack/disconnect.h>

#include "report/bundle.h"
#include "session/triggers.h"

/* What a session knows of its disconnects. */
typedef struct bp_disconnects bp_disconnects;

bugpack_status bp_disconnects_new(bp_disconnects **ret_disconnects, bugpack_error *error);
void bp_disconnects_free(bp_disconnects *disconnects);

/* Adds a line for each channel that went away. */
void bp_disconnects_list(bp_disconnects *disconnects, bp_trigger_list *list);

/* The cause of one disconnect, as it was at the call: what an order carries. */
typedef struct bp_cause bp_cause;
void bp_cause_free(bp_cause *cause);

/* Adds disconnect-cause.json. Fails only when the bundle cannot take it. */
bugpack_status bp_cause_add(const bp_cause *cause, bp_bundle *bundle, bugpack_error *error);

#endif
