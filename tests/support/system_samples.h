/*
 * system.json filled by hand; see model_samples.h.
 */
#ifndef TESTS_SUPPORT_SYSTEM_SAMPLES_H
#define TESTS_SUPPORT_SYSTEM_SAMPLES_H

#include "model/system.h"

/* Prints one with everything; or, not `full`, one with the least. */
bugpack_status sample_system_print(bool full, bp_buffer *out, bugpack_error *error);

#endif
