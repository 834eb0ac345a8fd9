/*
 * Running code that may fault, inside a handler of the signals that a fault raises.
 */
#ifndef BP_PLATFORM_LINUX_CRASH_GUARD_H
#define BP_PLATFORM_LINUX_CRASH_GUARD_H

#include <stdbool.h>

/* Calls `run`; false when it faulted, and the handler called bp_guard_escape. May be nested. One
 * thread at a time. Safe in a signal handler. */
bool bp_guard_run(void (*run)(void *context), void *context);

/* Leaves the innermost bp_guard_run; returns when there is none. On its thread alone. */
void bp_guard_escape(void);

#endif
