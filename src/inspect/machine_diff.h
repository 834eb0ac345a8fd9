/*
 * Compares two captures of the whole machine by process name, cgroup or thread name. Pure: texts
 * in, rows out. Any thread.
 *
 * A thread is matched by its ids and its start. Only what is in both captures is subtracted: the
 * counters of a thread that has ended are gone, and those of a new one began at 0.
 */
#ifndef BP_INSPECT_MACHINE_DIFF_H
#define BP_INSPECT_MACHINE_DIFF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "base/sink.h"
#include "inspect/json_diff.h"
#include "platform/machine_threads.h"

/* What threads are grouped by. */
typedef enum bp_machine_key {
    BP_MACHINE_BY_PROCESS,
    BP_MACHINE_BY_CGROUP,
    BP_MACHINE_BY_THREAD
} bp_machine_key;

/* The values of the threads of a group that are in one capture alone. */
typedef struct bp_machine_rest {
    uint64_t count; /* threads */
    uint64_t measured_count;
    uint64_t value; /* of those measured */
} bp_machine_rest;

/*
 * The threads of one name: that of the second capture for a thread in both. Values are sums, at
 * most UINT64_MAX; of a maximum they are the largest.
 */
typedef struct bp_machine_row {
    /* As in the JSON, but a kernel worker without its task: "kworker/0:1". Owned by the diff. */
    const char *name;
    uint64_t threads_before, threads_after, threads_in_both;
    uint64_t not_compared_count; /* not measured, or it is unclear where the thread was */
    bp_change change;            /* of those in both; known where one was measured in both */
    bp_machine_rest ended, born;
    uint64_t weight; /* by how much the group changed, with what was born */
} bp_machine_row;

typedef struct bp_machine_diff {
    bp_machine_row *rows; /* by weight, largest first; unknown last, then by name */
    size_t row_count;
    bool is_maximum;   /* of the counter: it is not added up */
    bool is_same_boot; /* otherwise no thread is in both */
    bool is_complete_before, is_complete_after;
    /* Threads whose counter was measured. */
    size_t measured_before, measured_after;
    bp_buffer names_before, names_after; /* what the rows point into */
    /* Documents of the members `cgroups` and `pressure`. */
    bp_buffer groups_before, groups_after;
} bp_machine_diff;

/*
 * Compares one counter, named as in the JSON: "schedstat.run_ns". There is a row for each name of
 * either capture, also when nothing has changed.
 *
 * Errors: INVALID (no such counter), CORRUPT (a text is no host-threads.json; says which, where),
 * NO_MEMORY, those of what gives the texts. `ret_diff` is released by the caller.
 */
bugpack_status bp_machine_diff_compute(const bp_giver *before, const bp_giver *after,
                                       bp_machine_key key, const char *counter,
                                       bp_machine_diff *ret_diff, bugpack_error *error);
void bp_machine_diff_release(bp_machine_diff *diff);

/* Whether there is a change, or a measured thread that ended or was born. */
bool bp_machine_row_is_changed(const bp_machine_row *row);

/* Whether nothing of a row is known. */
bool bp_machine_row_is_unknown(const bp_machine_row *row);

/* Whether there is a counter of this name. */
bool bp_machine_diff_has_counter(const char *counter);

/* The name of each counter, in turn; false after the last. */
bool bp_machine_diff_name_counter(size_t index, char *out, size_t out_bytes);

#endif
