/* Which files hold a jemalloc, and where its counters are. */
#ifndef BP_PROBE_HEAP_PROBER_H
#define BP_PROBE_HEAP_PROBER_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

typedef struct bp_heap_prober_options {
    /* The bugpack command, which calibrates a stripped library (probe/calibration.h); copied. NULL:
     * only calibrations that are cached are used. */
    const char *calibrator_path;
    uint32_t calibration_timeout_ms;
    bool use_cache; /* read and write the user's cache of calibrations */
    /* Stop a thread for an instant where its C library does not give its thread pointer. */
    bool allow_stop;
    uint32_t stop_timeout_ms; /* per thread */
    /* No further file of a process is examined after so long: it can have thousands of them, each
     * made to take as long as it can. */
    uint32_t search_timeout_ms;
} bp_heap_prober_options;

#define BP_HEAP_PROBER_OPTIONS_INIT                                                                \
    { NULL, 3000u, true, true, 200u, 5000u }

/* One serves any number of processes and threads, so that each file is examined, and each library
 * calibrated, once. */
typedef struct bp_heap_prober bp_heap_prober;

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error);
void bp_heap_prober_free(bp_heap_prober *prober);

#endif
