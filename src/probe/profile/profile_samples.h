/*
 * The copied samples of a ring, and their folding. Linux only, the second with libdw only.
 */
#ifndef BP_PROFILE_PROFILE_SAMPLES_H
#define BP_PROFILE_PROFILE_SAMPLES_H

#include <stdatomic.h>
#include <stddef.h>

#include "profile/profile.h"

typedef struct bp_copied_ring {
    unsigned char *data; /* pages; NULL: nothing was sampled */
    size_t data_bytes;
    uint64_t head;
} bp_copied_ring;

struct bp_profile_samples {
    pid_t pid; /* of the process that the ring is about */
    uint64_t rate_hz;
    uint64_t from_ns, until_ns; /* monotonic; samples of the first instant are left out */
    bool excludes_kernel;
    size_t ring_count;
    bp_copied_ring rings[];
};

/* Folds them into `out`, whose facts it sets: those of the process, and those of others that were
 * sampled with it as far as they still run. As bp_profile_fold_end. */
bugpack_status bp_profile_samples_fold(const bp_profile_samples *samples, uint64_t symbols_until_ns,
                                       const atomic_bool *stop, bp_profile *out,
                                       bugpack_error *error);

#endif
