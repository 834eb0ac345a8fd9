/*
 * The summary of pedantic mode, written beside its reports when a session ends: every gap, and
 * whether it has a report.
 */
#ifndef BP_MODEL_PEDANTIC_SUMMARY_H
#define BP_MODEL_PEDANTIC_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "base/buffer.h"

/* One gap key. Strings are borrowed and may hold any bytes. */
typedef struct bp_pedantic_gap {
    const char *key;
    const char *channel;
    size_t channel_bytes; /* 0: none */
    uint64_t count;       /* occurrences */
    uint64_t first_wall_ns, last_wall_ns;
    bool is_written;    /* its report is on disk */
    const char *reason; /* why not; "" when it is */
} bp_pedantic_gap;

/* Strings are borrowed; NULL and "" are left out. */
typedef struct bp_pedantic_summary {
    const char *session_id;
    const char *app_name, *app_version, *app_build_id;
    pid_t pid;
    uint64_t opened_wall_ns, closed_wall_ns;
    uint32_t cap, channel_cap;
    const bp_pedantic_gap *gaps;
    size_t gap_count;
} bp_pedantic_summary;

/* Appends the JSON document. */
bugpack_status bp_pedantic_summary_print(const bp_pedantic_summary *summary, bp_buffer *out,
                                         bugpack_error *error);

#endif
