/* The sentence for a failed probe, with what to do about it. */
#ifndef BP_PROBE_HEAP_ADVICE_H
#define BP_PROBE_HEAP_ADVICE_H

#include <stddef.h>

#include "model/thread_heap.h"

/* Without Yama. */
#define BP_YAMA_NONE (-1)

/*
 * A sentence for a failure without one of its own: what failed, why, and, where the system refused,
 * what to do. `yama_scope` is the value of /proc/sys/kernel/yama/ptrace_scope. Pure.
 */
void bp_heap_advice(bp_heap_failure failure, int system_errno, int yama_scope, char *out,
                    size_t out_bytes);

/* What to do where the system refuses to show another process, and Yama is not why. */
#define BP_ADVICE_DENIED                                                                           \
    "the process is another user's, or protects itself, or a container forbids it: run as its "    \
    "user or as root; in a container allow it CAP_SYS_PTRACE"

/* Reads Yama's scope; BP_YAMA_NONE when there is none. */
int bp_yama_scope_read(void);

#endif
