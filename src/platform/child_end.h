/*
 * How a child of ours ended, while it is not reaped yet.
 */
#ifndef BP_PLATFORM_CHILD_END_H
#define BP_PLATFORM_CHILD_END_H

#include <signal.h>

/*
 * The exit status of a child, or the signal that ended or stopped it: si_status of waitid(2). On
 * macOS waitid leaves out the signal, so the kernel is asked about the child, which must not have
 * been reaped; 0 when that fails.
 */
int bp_child_end_status(const siginfo_t *info);

#endif
