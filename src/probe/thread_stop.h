/*
 * Reads a thread pointer by stopping the thread for an instant, for C libraries without a list.
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT, never ATTACH: a tracer killed between ATTACH and its wait
 * leaves the target stopped for good; after SEIZE the kernel resumes it. Never EXITKILL, which
 * would kill the target too. Linux only.
 */
#ifndef BP_PROBE_THREAD_STOP_H
#define BP_PROBE_THREAD_STOP_H

#include <stdint.h>
#include <sys/types.h>

#include "model/thread_heap.h"

/*
 * Reads the thread pointer of thread `tid`, which has `timeout_ms` to stop. A signal that it
 * stopped for is delivered on, and a stopped thread (SIGSTOP) stays stopped. Returns NONE, or the
 * step that failed with its errno. The calling thread is the tracer and must end soon: one that did
 * not stop in time is released only then.
 */
bp_heap_failure bp_thread_stop_read_pointer(pid_t tid, uint32_t timeout_ms, uint64_t *ret_pointer,
                                            int *ret_errno);

#endif
