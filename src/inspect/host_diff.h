/*
 * Compares two captures of the whole machine by process name, cgroup or thread name. Pure: texts
 * in, rows out. Any thread.
 */
#ifndef BP_INSPECT_HOST_DIFF_H
#define BP_INSPECT_HOST_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "inspect/change.h"

/* What threads are grouped by. */
typedef enum bp_host_key { BP_HOST_BY_PROCESS, BP_HOST_BY_CGROUP, BP_HOST_BY_THREAD } bp_host_key;

/* A counter summed over the threads of one name. */
typedef struct bp_host_row {
    /* As in the JSON, but a kernel worker without its task: "kworker/0:1". Owned by the diff. */
    const char *name;
    uint64_t threads_before, threads_after;
    /* Sums over the measured threads, at most UINT64_MAX. Known where one thread was measured, and
     * where there is no thread of that name. */
    bp_change change;
} bp_host_row;

typedef struct bp_host_diff {
    bp_host_row *rows; /* by the size of the change, largest first, unknown last, then by name */
    size_t row_count;
    bp_buffer names_before, names_after; /* what the rows point into */
} bp_host_diff;

/*
 * Compares one counter, named as in the JSON: "schedstat.run_ns". There is a row for each name of
 * either capture, also when nothing has changed. Cumulative counters of a group can fall when a
 * thread of it has ended.
 *
 * Errors: INVALID (no such counter), CORRUPT (a text is no host-threads.json; says which, where),
 * NO_MEMORY. `ret_diff` is released by the caller.
 */
bugpack_status bp_host_diff_compute(const void *before, size_t before_bytes, const void *after,
                                    size_t after_bytes, bp_host_key key, const char *counter,
                                    bp_host_diff *ret_diff, bugpack_error *error);
void bp_host_diff_release(bp_host_diff *diff);

/* Whether there is a counter of this name. */
bool bp_host_diff_has_counter(const char *counter);

#endif
