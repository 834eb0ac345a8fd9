/*
 * How a child of ours ended, while it is not reaped yet.
 */
#ifndef BP_PLATFORM_CHILD_END_H
#define BP_PLATFORM_CHILD_END_H

#include <signal.h>

/*
 * The exit status of a child, or the number of the signal that ended or stopped it: what si_status
 * of waitid(2) is. On macOS waitid leaves the signal that ended it out, so there the kernel is
 * asked about the child itself, which must not have been reaped; 0 when even that says nothing.
 */
int bp_child_end_status(const siginfo_t *info);

#endif
