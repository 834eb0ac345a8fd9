/*
 * The file systems that a process uses. Linux only.
 */
#ifndef BP_MACHINE_FILESYSTEMS_H
#define BP_MACHINE_FILESYSTEMS_H

#include "model/system.h"

/*
 * Fills the `filesystems` of a system: those of the directories of the process below `process_fd`,
 * which is /proc/<pid>, and those of files that it has open for writing. `root_fd` is its root; -1:
 * its directories are not ours to see. What cannot be read is left out. Blocks as long as a file
 * system does not answer. Any thread.
 */
void bp_filesystems_read(int process_fd, int root_fd, bp_system *system);

#endif
