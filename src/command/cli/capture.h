/*
 * A report about running processes for a command that reads it at once.
 */
#ifndef BP_CLI_CAPTURE_H
#define BP_CLI_CAPTURE_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/command.h"
#include "cli/select.h"

/* Strings are borrowed. */
typedef struct bp_cli_zip_request {
    bp_cli_select select;
    uint32_t window_ms;
    bool is_kept;           /* the zip is also written into a directory, and its path is said */
    const char *output_dir; /* with `is_kept`; NULL: the current directory */
} bp_cli_zip_request;

/*
 * Writes a report, and returns its zip, open for reading: in memory and without a name, unless it
 * is kept. The caller closes it. Reports a failure; `ret_exit` is then another than COMPLETE.
 */
int bp_cli_capture_zip(const bp_cli_zip_request *request, bp_cli_exit *ret_exit);

#endif
