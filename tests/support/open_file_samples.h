/*
 * files.json filled by hand; see model_samples.h.
 */
#ifndef TESTS_SUPPORT_OPEN_FILE_SAMPLES_H
#define TESTS_SUPPORT_OPEN_FILE_SAMPLES_H

#include "model/open_files.h"

/* Prints one with everything, with a descendant; or, not `full`, one with the least. */
bugpack_status sample_open_files_print(bool full, bp_buffer *out, bugpack_error *error);

#endif
