/*
 * The sums of one counter in one capture, by name.
 */
#ifndef BP_INSPECT_HOST_SUMS_H
#define BP_INSPECT_HOST_SUMS_H

#include "inspect/host_diff.h"

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

#endif
