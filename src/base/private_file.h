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
 * Opens an empty file in `dir_fd`: readable, writable, close-on-exec, of mode 0600 whatever the
 * umask, and above the standard streams, so that a host which has closed those does not print into
 * it. -1 with errno, also where the file system lets others read it whatever its mode.
 *
 * Unnamed: -1 where the system or the file system has no such thing; `may_be_linked` says whether
 * it can get a name later. Named: under a name that nobody can guess, which is put in `ret_name`.
 */
int bp_private_file_open_unnamed(int dir_fd, bool may_be_linked);
int bp_private_file_open_named(int dir_fd, char ret_name[BP_PRIVATE_FILE_NAME_BYTES]);

#endif
