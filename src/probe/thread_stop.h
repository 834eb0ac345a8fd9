/*
 * The thread pointer of a thread by stopping it for an instant, where its C library does not tell.
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT, never ATTACH: a tracer that is killed between ATTACH and its
 * wait leaves the target stopped for good, and after SEIZE the kernel lets it run. Never EXITKILL,
 * which would take the target along. Linux only.
 */
#ifndef BP_PROBE_THREAD_STOP_H
#define BP_PROBE_THREAD_STOP_H

#include <stdint.h>
#include <sys/types.h>

#include "model/thread_heap.h"

/*
 * Reads the thread pointer of thread `tid`. Waits at most `timeout_ms` for it to stop. A signal
 * that it stopped for is delivered on, and a thread that was stopped already (SIGSTOP) stays so.
 * Returns NONE, or which step failed, with its errno (ETIMEDOUT, ESRCH, EPERM …).
 *
 * The caller's thread is the tracer. It has to be one that ends soon: a thread that did not stop in
 * time can only be let go by the end of its tracer.
 */
bp_heap_failure bp_thread_stop_read_pointer(pid_t tid, uint32_t timeout_ms, uint64_t *ret_pointer,
                                            int *ret_errno);

#endif
