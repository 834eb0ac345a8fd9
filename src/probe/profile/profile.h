/*
 * A profile of a process: where its threads were whenever they had used some time of a processor.
 * docs/HANG_AND_CRASH.md says how it is taken.
 */
#ifndef BP_PROFILE_PROFILE_H
#define BP_PROFILE_PROFILE_H

#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "model/profile.h"
#include "profile/profile_ring.h"

typedef struct bp_profile {
    bp_profile_facts facts;
    bp_folded folded;
} bp_profile;

static inline void bp_profile_release(bp_profile *profile) {
    bp_folded_release(&profile->folded);
}

typedef struct bp_profile_plan {
    bp_profile_samples *samples; /* fold these, which are taken over; NULL: take some */
    pid_t pid;
    uint64_t birth;      /* of its first thread, as in platform/task.h; 0: any */
    uint64_t window_ns;  /* about how long it will be sampled: a long window has fewer a second */
    uint64_t timeout_ns; /* for the end: samples are unwound and named */
} bp_profile_plan;

/* A process that is sampled, or samples that are folded, by a thread of its own: "bugpack-profile".
 */
typedef struct bp_profiler bp_profiler;

/* Returns at once; whether the process can be sampled is known at the end. NO_MEMORY. */
bugpack_status bp_profiler_begin(const bp_profile_plan *plan, bp_profiler **ret_profiler,
                                 bugpack_error *error);

/*
 * Ends the window, and waits until the samples are unwound and named, or the time is over. The
 * profiler is gone afterwards, in any case. Errors, with a sentence that names what refused it:
 * DENIED, UNSUPPORTED, LIMIT, NO_PROCESS, TIMEOUT, NO_MEMORY, IO. The caller releases the profile.
 */
bugpack_status bp_profiler_end(bp_profiler *profiler, bp_profile *ret_profile,
                               bugpack_error *error);

/* The same without a result and without a wait. NULL is fine. */
void bp_profiler_abandon(bp_profiler *profiler);

#endif
