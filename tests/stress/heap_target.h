/*
 * Programs to look into, started and ended by a test. Each dies with the test.
 */
#ifndef TESTS_STRESS_HEAP_TARGET_H
#define TESTS_STRESS_HEAP_TARGET_H

#include <sys/types.h>

#include "heap/thread_heap.h"

/* Starts `path` with the arguments, in which "READY" becomes the path of a file, and waits until it
 * has written that. */
pid_t heap_target_start(const char *const *arguments);
void heap_target_end(pid_t pid);

/* Probes it once, with the bugpack command as calibrator; checks that the call itself succeeds. */
void heap_target_probe(pid_t pid, uint32_t snapshot_count, bp_thread_heap_reading *ret_reading);

/* The line of a thread in a snapshot, or NULL. */
const bp_thread_heap *heap_target_find(const bp_thread_heap_snapshot *snapshot, pid_t tid);

#endif
