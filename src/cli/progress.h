/*
 * Waiting for a report, with a bar for the person who waits.
 */
#ifndef BP_CLI_PROGRESS_H
#define BP_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* True when standard error is a terminal that understands "erase to the end of the line". */
bool bp_cli_progress_is_possible(void);

/*
 * Waits until `fd` is readable. With `show`, a bar on standard error tells how much of the window
 * of `window_ms` has passed, and then that the report is being written; it is erased at the end,
 * also when SIGINT, SIGTERM or SIGHUP ends the program. Colour unless NO_COLOR is set.
 */
void bp_cli_progress_wait(int fd, uint32_t window_ms, bool show);

#endif
