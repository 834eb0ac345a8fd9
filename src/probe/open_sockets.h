/*
 * What the kernel says of the sockets of a process. Linux only.
 */
#ifndef BP_PROBE_OPEN_SOCKETS_H
#define BP_PROBE_OPEN_SOCKETS_H

#include "model/open_files.h"

/*
 * Gives each file that is a socket its `socket`: its protocol, and what the tables of the network
 * namespace of the process say. `fds_fd` is /proc/<pid>/fd. False without memory.
 */
bool bp_open_sockets_read(int fds_fd, uint64_t deadline_ns, bp_open_files *process);

#endif
