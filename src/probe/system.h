/*
 * What is known of the machine, and of where on it a process runs. No program is run but rpm,
 * where the plan says so. Any thread.
 */
#ifndef BP_PROBE_SYSTEM_H
#define BP_PROBE_SYSTEM_H

#include <stdatomic.h>
#include <sys/types.h>

#include "model/system.h"

/* The package of a program does not change while it runs: whoever keeps this reads it once. */
typedef struct bp_package_memory {
    char *path;                     /* of the executable; NULL: nothing is known. Owned */
    bool has_package, is_undecided; /* rpm took too long */
    bp_package package;
} bp_package_memory;

typedef struct bp_system_plan {
    bool with_process; /* else of the machine alone */
    pid_t pid;         /* 0: our own */
    bool with_hostname;
    bool asks_rpm;                  /* where dpkg does not know the program */
    bp_known_uint oom_kills_before; /* of bp_system_oom_kills, as the session began */
    uint64_t deadline_ns;           /* monotonic; a package is not searched for after it */
    bp_package_memory *memory;
} bp_system_plan;

/* How many processes of the machine the kernel has killed for lack of memory since boot. Linux
 * 4.13. */
bp_known_uint bp_system_oom_kills(void);

/*
 * Reads all of it. What cannot be read is absent; of a process that has ended, everything of the
 * process. The caller releases the result. NO_MEMORY; UNSUPPORTED on other systems than Linux.
 */
bugpack_status bp_system_read(const bp_system_plan *plan, bp_system *ret_system,
                              bugpack_error *error);

#endif
