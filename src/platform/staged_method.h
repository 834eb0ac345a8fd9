/*
 * The parts of a staged file that only its own sources and its tests see: the fall-back by name,
 * and the sweep with another age.
 */
#ifndef BP_PLATFORM_STAGED_METHOD_H
#define BP_PLATFORM_STAGED_METHOD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/id.h"
#include "platform/staged_file.h"

/* The name while a file is being written: prefix, 32 lower-case hexadecimal digits, suffix. */
#define BP_STAGED_PREFIX ".bugpack-"
#define BP_STAGED_SUFFIX ".tmp"
#define BP_STAGED_NAME_BYTES                                                                       \
    (sizeof BP_STAGED_PREFIX - 1 + BP_ID_BYTES - 1 + sizeof BP_STAGED_SUFFIX)

/* Like bp_staged_file_new, but always under a temporary name, also where O_TMPFILE works. */
bugpack_status bp_staged_file_new_named(int dir_fd, const char *dir_name, bp_staged_file **ret_file,
                                        bugpack_error *error);

/* Whether the file has a temporary name, that is, whether it is of the fall-back. */
bool bp_staged_file_is_named(const bp_staged_file *file);

/* bp_staged_file_sweep for files that were last written `age_secs` ago, or longer. */
size_t bp_staged_file_sweep_older(int dir_fd, uint64_t age_secs);

#endif
