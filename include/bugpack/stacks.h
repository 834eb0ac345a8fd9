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
 * may then fail with EINTR, as signal(7) says of a stop. Needs a target_pid. Since 0.1.0. */
#define BUGPACK_STACKS_ALL UINT64_C(2)

#endif
