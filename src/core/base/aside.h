/*
 * Work that a system call may keep for good, such as reading a file of a server that does not
 * answer. A child process does it, so that neither this process nor its end waits for the call. The
 * library does not fork: the command gives it the function that does (run/aside.h).
 */
#ifndef BP_BASE_ASIDE_H
#define BP_BASE_ASIDE_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/child.h"

enum { BP_ASIDE_ANSWER_MAX_BYTES = 16384 };

/* All borrowed. */
typedef struct bp_aside {
    /* Runs in the child, which has no descriptor but `out_fd` and no other thread: it takes no lock
     * of ours. What it writes to `out_fd` goes to the sink. It has closed its files when it
     * returns. `answer` is zeroed. */
    void (*work)(const void *context, void *answer, int out_fd);
    const void *context;
    size_t answer_bytes;
    uint32_t stall_ms;                          /* it is given up when nothing came for so long */
    bool (*is_cancelled)(const void *observed); /* and when this is true; NULL: never */
    const void *observed;
} bp_aside;

/*
 * Returns when `work` has returned, with its answer, or when it was given up: then the child is
 * killed, and may be left in `child`, which starts zeroed and is kept from one call to the next.
 * The next call fails with BUSY as long as it is there, so that each has at most one.
 *
 * UNSUPPORTED: no child can be had. TIMEOUT; CANCELLED; BUSY; IO: it died; and what the sink
 * returned.
 */
typedef bugpack_status bp_aside_runner(const bp_aside *aside, bp_sink *sink, void *sink_context,
                                       void *ret_answer, bp_child *child);

#endif
