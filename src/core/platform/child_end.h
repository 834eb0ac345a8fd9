/*
 * How a child of ours ended, while it is not reaped yet.
 */
#ifndef BP_PLATFORM_CHILD_END_H
#define BP_PLATFORM_CHILD_END_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/wait.h>

/* The CPU time of a child that has ended and is not reaped, with that of the children it has waited
 * for: what wait4(2) will say. 0 where that is not known. */
uint64_t bp_child_cpu_ns(pid_t pid);

/* True if waitid reports an end. It also reports stops of a child that is traced, when only
 * ends are asked for. */
static inline bool bp_child_has_ended(const siginfo_t *info) {
    return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
           info->si_code == CLD_DUMPED;
}

/* Tells without waiting whether a child has ended, and how. */
static inline bool bp_child_look(pid_t pid, siginfo_t *ret_info) {
    memset(ret_info, 0, sizeof *ret_info);
    return waitid(P_PID, (id_t)pid, ret_info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
           ret_info->si_pid != 0 && bp_child_has_ended(ret_info);
}

#endif
