/*
 * The sums of one counter in one capture, by name.
 */
#ifndef BP_INSPECT_HOST_SUMS_H
#define BP_INSPECT_HOST_SUMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* What threads are grouped by. */
typedef enum bp_host_key { BP_HOST_BY_PROCESS, BP_HOST_BY_CGROUP, BP_HOST_BY_THREAD } bp_host_key;

/* One thread, or all threads of a name. */
typedef struct bp_host_sum {
    size_t name_offset; /* in `names` */
    const char *name;   /* there, once all are read */
    uint64_t thread_count;
    uint64_t sum;
    bool is_measured;
} bp_host_sum;

typedef struct bp_host_sums {
    bp_host_sum *items;
    size_t count, capacity;
    bp_buffer names; /* each with its NUL */
} bp_host_sums;

void bp_host_sums_release(bp_host_sums *sums);

/* Reads a capture. The items are ascending by name, each name once. */
bugpack_status bp_host_sums_read(const void *text, size_t text_bytes, bp_host_key key,
                                 const char *counter, bp_host_sums *ret_sums, bugpack_error *error);

/* Whether there is a counter of this name. */
bool bp_host_diff_has_counter(const char *counter);

#endif
