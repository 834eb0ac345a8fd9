/*
 * The process between us and a command on a pseudo-terminal; child.h says why it is there.
 */
#ifndef BP_RUN_MONITOR_H
#define BP_RUN_MONITOR_H

#include <sys/types.h>

#include "run/child.h"
#include <signal.h>

#include "run/plumbing.h"

/* What the monitor tells through its socket. */
typedef struct bp_run_message {
    bp_run_news news; /* BP_RUN_NOTHING: `pid` is the command's */
    pid_t pid;
    bp_run_end end;
} bp_run_message;

/* How a child that is not reaped yet ended, or what stopped it, of what waitid(2) says. */
bp_run_end bp_run_end_of(const siginfo_t *info);

/* Whether waitid tells of an end. macOS tells of a stop also when only ends are asked for. */
bool bp_run_is_end(const siginfo_t *info);

/* The whole life of the forked monitor; does not return. */
_Noreturn void bp_run_monitor(bp_run_plumbing *plumbing, int socket_fd);

#endif
