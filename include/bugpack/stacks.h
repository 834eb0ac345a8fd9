/*
 * The choices of bugpack_options.stacks: which threads of the process have a stack in stacks.txt
 * and stacks.json. docs/HANG_AND_CRASH.md says how they are read.
 */
#ifndef BUGPACK_STACKS_H
#define BUGPACK_STACKS_H

#include <stdint.h>

/* Blocked threads; no thread is stopped. Since 0.1.0. */
#define BUGPACK_STACKS_BLOCKED UINT64_C(1)

/* Threads that run as well, and blocked ones whose stack needs their registers: each is stopped for
 * an instant (PTRACE_SEIZE, PTRACE_INTERRUPT), one after the other. A system call of a blocked one
 * may then fail with EINTR, as signal(7) says of a stop.
 *
 * Without a target_pid this needs bugpack_options.calibrator_path, the bugpack command: it runs
 * beside the host for half a minute at most, as no thread may stop another one of its process. The
 * host gets no SIGCHLD for it, and no waitpid(-1) finds it. Where that cannot be had (the host is
 * process 1 or a subreaper), or the system forbids it, threads that run are listed with the reason.
 * Since 0.1.0. */
#define BUGPACK_STACKS_ALL UINT64_C(2)

/* The same, also where Yama lets only ancestors trace a process: the command may do so by
 * PR_SET_PTRACER while it runs. A process has one such permission, so a crash reporter of the host
 * that has it loses it. Since 0.1.0. */
#define BUGPACK_STACKS_ALL_PTRACER UINT64_C(3)

#endif
