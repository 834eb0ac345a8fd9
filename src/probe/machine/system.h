/*
 * What is known of the machine, and of where on it a process runs. Any thread.
 */
#ifndef BP_MACHINE_SYSTEM_H
#define BP_MACHINE_SYSTEM_H

#include <sys/types.h>

#include "model/system.h"

typedef struct bp_system_plan {
    bool with_process; /* else of the machine alone */
    pid_t pid;         /* 0: our own */
    bool with_hostname;
    bp_known_uint oom_kills_before; /* of bp_system_oom_kills, as the session began */
    const bp_system *groups_before; /* of bp_system_read_groups, likewise; NULL: none */
} bp_system_plan;

/* The number of processes that the kernel has killed for lack of memory since boot. Linux
 * 4.13. */
bp_known_uint bp_system_oom_kills(void);

/* Reads the control groups of a process alone. Without any where it has ended, where they cannot be
 * read, and on other systems than Linux. The caller releases the result. */
void bp_system_read_groups(pid_t pid, bp_system *ret_system);

/* For a process that has ended: gives a system without groups those that were read before, with
 * the counts that each has now. False without memory. */
bool bp_system_read_groups_again(const bp_system *before, bp_system *system);

/*
 * Reads all of it. What cannot be read is absent; of a process that has ended, everything of the
 * process. The caller releases the result. NO_MEMORY; UNSUPPORTED on other systems than Linux.
 */
bugpack_status bp_system_read(const bp_system_plan *plan, bp_system *ret_system,
                              bugpack_error *error);

#endif
