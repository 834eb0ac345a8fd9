/*
 * Commands that print something each interval until they are interrupted: --follow.
 */
#ifndef BP_CLI_FOLLOW_H
#define BP_CLI_FOLLOW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "cli/command.h"
#include "cli/output.h"

/*
 * Makes SIGINT and SIGTERM end what follows, with what there is by then: `ret_fd` becomes readable.
 * A second one ends the program as usual. A signal that is ignored stays so. Once per program.
 */
bugpack_status bp_cli_catch_end(int *ret_fd, bugpack_error *error);

/* Sleeps until a monotonic time. False when it was ended before. */
bool bp_cli_wait_until(int end_fd, uint64_t until_ns);

/* As bp_cli_format_bytes, with a sign. */
enum { BP_CLI_CHANGE_BYTES = BP_CLI_BYTES_BYTES + 1 };
const char *bp_cli_format_change(uint64_t before_bytes, uint64_t after_bytes,
                                 char out[BP_CLI_CHANGE_BYTES]);

#endif
