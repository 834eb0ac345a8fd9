/*
 * Disconnects: one report, and then a cool-down.
 */
#ifndef BP_TRIGGER_DISCONNECT_H
#define BP_TRIGGER_DISCONNECT_H

#include <bugpack/disconnect.h>

/* Counts a disconnect, and makes a report of it unless another one was made shortly before: then
 * BUSY. `self` is the trigger's object; the strings are copied. NO_MEMORY, CLOSED. Any thread. */
bugpack_status bp_disconnect_see(void *self, const bugpack_disconnect_cause *cause);

#endif
