/*
 * Samples that the kernel keeps before anybody asks for a profile: it overwrites the oldest. Nobody
 * of ours runs for them until a report copies them.
 */
#ifndef BP_PROFILE_PROFILE_RING_H
#define BP_PROFILE_PROFILE_RING_H

#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

typedef struct bp_profile_ring bp_profile_ring;

#define BP_PROFILE_HZ_MAX 1000

/*
 * Begins to sample the threads of a process `rate_hz` times in each second of their CPU time: those
 * that it has, and those that they begin. `pid` is 0 for our own; another one is sampled with its
 * children, and through an exec. Where that is refused, the copies say why. NULL without memory.
 */
bp_profile_ring *bp_profile_ring_open(pid_t pid, uint32_t rate_hz);

/* Why there are no samples; NULL when there are. */
const char *bp_profile_ring_trouble(const bp_profile_ring *ring);

/* NULL is fine. Not in a child of fork. */
void bp_profile_ring_close(bp_profile_ring *ring);

/* The samples up to an instant; owned. */
typedef struct bp_profile_samples bp_profile_samples;

/*
 * Copies the samples of the last seconds before `until_ns` (monotonic). One thread at a time.
 * Errors: those of the opening, whose sentence names what refused it; IO (the host closed a
 * descriptor of it); NO_MEMORY.
 */
bugpack_status bp_profile_ring_copy(const bp_profile_ring *ring, uint64_t until_ns,
                                    bp_profile_samples **ret_samples, bugpack_error *error);
void bp_profile_samples_free(bp_profile_samples *samples);

#endif
