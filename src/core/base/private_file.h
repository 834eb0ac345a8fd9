/*
 * Files that nobody else can open: of mode 0600, without a name where the system can.
 */
#ifndef BP_BASE_PRIVATE_FILE_H
#define BP_BASE_PRIVATE_FILE_H

#include <stdbool.h>

#include "base/id.h"

/*
 * A name of ours: prefix, 32 lower-case hexadecimal digits, suffix. What a killed process leaves
 * under such a name is swept (bp_staged_file_sweep).
 */
#define BP_PRIVATE_FILE_PREFIX ".bugpack-"
#define BP_PRIVATE_FILE_SUFFIX ".tmp"
#define BP_PRIVATE_FILE_NAME_BYTES                                                                 \
    (sizeof BP_PRIVATE_FILE_PREFIX - 1 + BP_ID_BYTES - 1 + sizeof BP_PRIVATE_FILE_SUFFIX)

/*
 * Opens an empty file in `dir_fd` for reading and writing: close-on-exec, of mode 0600 whatever the
 * umask, and above the standard streams, which a host may have closed. -1 with errno, also where
 * others could read it whatever its mode, and where the system has no unnamed files.
 * `may_be_linked`: it can get a name later. `ret_name` is one that nobody can guess.
 */
int bp_private_file_open_unnamed(int dir_fd, bool may_be_linked);
int bp_private_file_open_named(int dir_fd, char ret_name[BP_PRIVATE_FILE_NAME_BYTES]);

#endif
