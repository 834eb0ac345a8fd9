#include "platform/child_end.h"

#include <stdbool.h>
#include <sys/wait.h>

#include <libproc.h>

/* What proc_pidinfo wants to be told to look among those that wait to be reaped (proc_pidinfo in
 * xnu/bsd/kern/proc_info.c). */
enum { with_zombies = 1 };

/*
 * waitid takes the exit status out of the wait status and leaves the signal behind (waitid_nocancel
 * in xnu/bsd/kern/kern_exit.c); .NET found that out when it began to use it. libproc shows the wait
 * status whole.
 */
int bp_child_end_status(const siginfo_t *info) {
    struct proc_bsdinfo bsd;
    bool is_killed = info->si_code == CLD_KILLED || info->si_code == CLD_DUMPED;
    if (!is_killed || info->si_status != 0) {
        return info->si_status;
    }
    int count = proc_pidinfo(info->si_pid, PROC_PIDTBSDINFO, with_zombies, &bsd, (int)sizeof bsd);
    int status = count == (int)sizeof bsd ? (int)bsd.pbi_xstatus : 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}
