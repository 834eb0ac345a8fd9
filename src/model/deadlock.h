/*
 * Threads that wait for each other in a circle, none of them for a limited time.
 */
#ifndef BP_MODEL_DEADLOCK_H
#define BP_MODEL_DEADLOCK_H

#include "model/threads.h"

/*
 * Finds a deadlock that was not found before: the index of its thread with the lowest id, or
 * SIZE_MAX. The other threads follow by `waits_for`. `is_seen` is the caller's, a byte for each
 * thread, 0 at first.
 */
size_t bp_deadlock_next(const bp_process_threads *process, unsigned char *is_seen);

/* How many threads it has. */
size_t bp_deadlock_length(const bp_process_threads *process, size_t first);

/* Appends "locker-1 (5187) and locker-2 (5188) wait for each other's mutexes". Names may hold any
 * bytes. NO_MEMORY. */
bugpack_status bp_deadlock_describe(const bp_process_threads *process, size_t first,
                                    bp_buffer *out);

#endif
