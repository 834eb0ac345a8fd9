/*
 * What to tell somebody whose system refuses to let one process look into another.
 */
#ifndef BP_PROBE_HEAP_ADVICE_H
#define BP_PROBE_HEAP_ADVICE_H

#include <stddef.h>

#include "model/thread_heap.h"

/* Where there is no file of Yama's. */
#define BP_YAMA_NONE (-1)

/*
 * A sentence for a failure without one of its own: what could not be done, why, and what to do
 * about it where the system refused. `yama_scope` is what /proc/sys/kernel/yama/ptrace_scope says.
 * Pure.
 */
void bp_heap_advice(bp_heap_failure failure, int system_errno, int yama_scope, char *out,
                    size_t out_bytes);

/* Reads Yama's scope; BP_YAMA_NONE when there is none. */
int bp_yama_scope_read(void);

#endif
