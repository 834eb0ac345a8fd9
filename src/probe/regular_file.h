/*
 * Opening a name that another user may have chosen. Linux only.
 */
#ifndef BP_PROBE_REGULAR_FILE_H
#define BP_PROBE_REGULAR_FILE_H

#include <stdint.h>

/*
 * Opens a regular file for reading, close-on-exec. What the name stands for is looked at first,
 * through a descriptor that opens nothing, so that a device (a tape, a watchdog) or a FIFO notices
 * nothing. Symbolic links are followed. -1 with errno; ESTALE when it is no regular file.
 */
int bp_regular_file_open(const char *path);

/* The same for what an O_PATH descriptor holds; with an inode number, only if it has that. */
int bp_regular_file_reopen(int path_fd, uint64_t inode);

#endif
