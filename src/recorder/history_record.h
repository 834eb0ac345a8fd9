/*
 * The record of one interval.
 *
 * The writing program reads it, or a later one on the same machine, so numbers have the machine's
 * own byte order and width. A change of the layout needs a new tag; readers skip unknown tags.
 */
#ifndef BP_RECORDER_HISTORY_RECORD_H
#define BP_RECORDER_HISTORY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metrics.h"
#include "recorder/history.h"
#include "ring/ring.h"

#define BP_HISTORY_TAG 0x32545348u /* "HST2" */

typedef struct bp_history_thread {
    uint64_t tid;
    double cpu_percent;
    char name[64]; /* any bytes, NUL-terminated */
} bp_history_thread;

/* The payload. Only the first `busy_count` threads are written. */
typedef struct bp_history_record {
    uint64_t ended_ns; /* monotonic */
    uint64_t interval_ns;
    double cpu_percent;
    uint64_t rss_kb, vm_size_kb;
    uint64_t thread_count;
    uint32_t busy_count;
    uint16_t has_memory, has_own; /* 0 or 1 */
    uint64_t own_kb;              /* the part of rss_kb that may be bugpack's */
    bp_history_thread threads[BP_HISTORY_BUSIEST];
} bp_history_record;

/* Fills a record from the metrics of an interval, busiest threads first. */
void bp_history_record_make(const bp_metrics *metrics, uint64_t began_ns, uint64_t ended_ns,
                            bp_history_record *ret_record);

/* The size of its payload. */
size_t bp_history_record_bytes(const bp_history_record *record);

#endif
