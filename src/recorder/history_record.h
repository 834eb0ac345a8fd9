/*
 * How an interval lies in the ring.
 *
 * Records are read by the program that wrote them, or by a later one on the same machine that
 * recovers them, so numbers keep the machine's own order and width. What changes this layout
 * changes the tag, and a reader passes over tags that it does not know.
 */
#ifndef BP_RECORDER_HISTORY_RECORD_H
#define BP_RECORDER_HISTORY_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/metrics.h"
#include "recorder/history.h"
#include "ring/ring.h"

#define BP_HISTORY_TAG 0x31545348u /* "HST1" */

typedef struct bp_history_thread {
    uint64_t tid;
    double cpu_percent;
    char name[64]; /* any bytes, NUL-terminated */
} bp_history_thread;

/* The payload; of `threads` only the first `busy_count` are there. */
typedef struct bp_history_record {
    uint64_t ended_ns; /* monotonic */
    uint64_t interval_ns;
    double cpu_percent;
    uint64_t rss_kb, vm_size_kb;
    uint64_t thread_count;
    uint32_t busy_count;
    uint32_t has_memory; /* 0 or 1 */
    bp_history_thread threads[BP_HISTORY_BUSIEST];
} bp_history_record;

/* Fills a record with what was computed of an interval, the busiest threads first. */
void bp_history_record_make(const bp_metrics *metrics, uint64_t began_ns, uint64_t ended_ns,
                            bp_history_record *ret_record);

/* How many bytes of it go into the ring. */
size_t bp_history_record_bytes(const bp_history_record *record);

/* Takes a payload out of a ring; false when it is none of ours, or none that can be. */
bool bp_history_record_read(uint32_t tag, const void *payload, size_t payload_bytes,
                            bp_history_record *ret_record);

#endif
