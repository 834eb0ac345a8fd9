/*
 * host-threads.json with all that can be known, or with the least; see model_samples.h.
 */
#ifndef TESTS_SUPPORT_HOST_SAMPLES_H
#define TESTS_SUPPORT_HOST_SAMPLES_H

#include <stdbool.h>

#include "model/machine_threads.h"

bugpack_status sample_host_print(bool is_full, bp_buffer *out, bugpack_error *error);

#endif
