/*
 * The terminal that controls us, where standard input is not it or poll does not know it.
 */
#ifndef BP_RUN_CONTROLLING_H
#define BP_RUN_CONTROLLING_H

#include <stdbool.h>

/* Whether poll can wait for a descriptor. On macOS it does not know /dev/tty (poll(2), BUGS): it
 * says POLLNVAL at once, and whoever then reads hangs. */
bool bp_run_can_be_polled(int fd);

/*
 * Opens it for reading and writing, under a name with which poll can wait for it: /dev/tty, or what
 * standard output or standard error are. The descriptor is the caller's and close-on-exec; -1 when
 * there is no such terminal.
 */
int bp_run_open_controlling(void);

#endif
