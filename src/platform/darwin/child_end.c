#include "platform/child_end.h"

#include <stdbool.h>
#include <sys/wait.h>

#include <libproc.h>

/* The argument that makes proc_pidinfo search zombies too (proc_pidinfo in
 * xnu/bsd/kern/proc_info.c). */
enum { with_zombies = 1 };

/* Nothing tells it of a child that is to stay unreaped. */
uint64_t bp_child_cpu_ns(pid_t pid) {
    (void)pid;
    return 0;
}

/*
 * waitid drops the signal from the status of a killed child (waitid_nocancel in
 * xnu/bsd/kern/kern_exit.c; .NET found this). libproc returns the whole wait status.
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
