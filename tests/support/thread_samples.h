/*
 * threads.json filled by hand; see model_samples.h.
 */
#ifndef TESTS_SUPPORT_THREAD_SAMPLES_H
#define TESTS_SUPPORT_THREAD_SAMPLES_H

#include "model/threads.h"

/* Prints one with everything, with a descendant; or, not `full`, one with the least. */
bugpack_status sample_threads_print(bool full, bp_buffer *out, bugpack_error *error);

#endif
