/*
 * Snapshots of processes that never were.
 */
#ifndef TESTS_SUPPORT_MADE_SNAPSHOT_H
#define TESTS_SUPPORT_MADE_SNAPSHOT_H

#include "platform/task.h"

/* A snapshot whose counters are nanoseconds and whose threads, copied, are the caller's to release
 * with it. Ends the program when there is no memory. */
bp_task_snapshot made_snapshot(uint64_t taken_ns, uint64_t process_cpu,
                               const bp_thread_counters *threads, size_t thread_count);

#endif
