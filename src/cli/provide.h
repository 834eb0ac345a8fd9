/*
 * The files that a user named, as artefacts of a session.
 */
#ifndef BP_CLI_PROVIDE_H
#define BP_CLI_PROVIDE_H

#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/session.h>

#include "cli/input.h"

/* How long a file may take: a disk may take this long to give a large one. */
enum { BP_CLI_FILE_TIMEOUT_MS = 30000 };

/* All borrowed. */
typedef struct bp_cli_files {
    const char *session_path; /* NULL: none */
    const bp_cli_inputs *logs;
    uint64_t log_limit_bytes;
    const bp_cli_inputs *attachments;
    uint64_t attach_limit_bytes;
} bp_cli_files;

/* A mistake in a session file that somebody just wrote, told at the start. NULL: there is none. */
bugpack_status bp_cli_check_session_file(const char *path);

/* Registers them, in the order that the entries have in the zip. What fails is told. */
bugpack_status bp_cli_provide_files(bugpack *session, const char *command,
                                    const bp_cli_files *files);

#endif
