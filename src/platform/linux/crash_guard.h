/*
 * Running code that may fault, inside a handler of the signals that a fault raises, which blocks
 * them all.
 */
#ifndef BP_PLATFORM_LINUX_CRASH_GUARD_H
#define BP_PLATFORM_LINUX_CRASH_GUARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <ucontext.h>

/* Directly below a bp_guard_place: a stack to run on, because a host's alternate one may have room
 * for little more than what the kernel stores there, and one for the handler of a fault. */
enum { BP_GUARD_STACKS_BYTES = 96 << 10 };

typedef struct bp_guard_place {
    ucontext_t outer, inner;
    void (*run)(void *context);
    void *context;
    atomic_bool is_running;
} bp_guard_place;

/* Calls `run` there, with faults let through, until it returns or one calls bp_guard_escape. One
 * thread at a time. Safe in a signal handler. */
void bp_guard_run_apart(bp_guard_place *place, void (*run)(void *context), void *context);

/* Whether the calling thread, which is the only one that uses the place, is inside. */
bool bp_guard_is_running(const bp_guard_place *place);

/* Inside of that: calls `run`; false when it faulted, and the handler called bp_guard_escape. May
 * be nested. */
bool bp_guard_run(void (*run)(void *context), void *context);

/* Leaves the innermost bp_guard_run; returns when there is none. On its thread alone. */
void bp_guard_escape(void);

#endif
