#include "probe/thread_heap.h"

#include <stdlib.h>

#include "base/status.h"
#include "probe/calibration.h"

/* Systems other than Linux: nothing is known, and each probe says so. */
struct bp_heap_prober {
    char unused;
};

bugpack_status bp_heap_prober_new(const bp_heap_prober_options *options,
                                  bp_heap_prober **ret_prober, bugpack_error *error) {
    (void)options;
    bp_heap_prober *prober = calloc(1, sizeof *prober);
    if (prober == NULL) {
        return bp_fail_memory(error, "prepare a probe");
    }
    *ret_prober = prober;
    return BUGPACK_OK;
}

void bp_heap_prober_free(bp_heap_prober *prober) {
    free(prober);
}

bugpack_status bp_heap_probe(bp_heap_prober *prober, pid_t pid, const bp_heap_plan *plan,
                             bp_thread_heap_reading *ret_reading, bugpack_error *error) {
    (void)prober;
    (void)plan;
    (void)error;
    *ret_reading =
        (bp_thread_heap_reading){.pid = (uint64_t)pid,
                                 .failure = BP_HEAP_FAILURE_UNSUPPORTED,
                                 .reason = "this system has no way to look into another process"};
    return BUGPACK_OK;
}

int bp_calibration_help(int argument_count, char **arguments) {
    (void)argument_count;
    (void)arguments;
    return 1;
}
