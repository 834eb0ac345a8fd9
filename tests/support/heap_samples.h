/*
 * thread-heap.json filled by hand; see model_samples.h.
 */
#ifndef TESTS_SUPPORT_HEAP_SAMPLES_H
#define TESTS_SUPPORT_HEAP_SAMPLES_H

#include "model/thread_heap.h"

/* Static: not to be released. */
extern const bp_thread_heap_reading sample_heap_full, sample_heap_bare;

#endif
