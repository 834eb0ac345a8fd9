/* Which files hold a jemalloc, and where its counters are. */
#ifndef BP_PROBE_HEAP_PROBER_H
#define BP_PROBE_HEAP_PROBER_H

#include <bugpack/error.h>

#include "probe/heap_options.h"

/* One serves any number of processes and threads, so that each file is examined, and each library
 * calibrated, once. */
typedef struct bp_heap_prober bp_heap_prober;

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error);
void bp_heap_prober_free(bp_heap_prober *prober);

#endif
