/*
 * The descriptors of a process, read below /proc. Nothing is stopped and nothing is opened but
 * files of /proc. Any thread.
 */
#ifndef BP_PROCESS_OPEN_FILES_H
#define BP_PROCESS_OPEN_FILES_H

#include <sys/types.h>

#include "model/open_files.h"

/* The most descriptors that are listed of all processes of a report. */
#define BP_OPEN_FILE_MAX 16384

/*
 * Reads the descriptors of a process (0: our own) and what the kernel says of its sockets. Those of
 * this reading are not listed. At most `file_max` are read, and none that would begin after
 * `deadline_ns` (monotonic): `passed_over_count` has the others. With `wanted` only those of the
 * `file_max` numbers there, ascending, that are open. The caller releases the result. NO_PROCESS,
 * DENIED, NO_MEMORY; UNSUPPORTED on other systems than Linux.
 */
bugpack_status bp_open_files_read(pid_t pid, const uint64_t *wanted, size_t file_max,
                                  uint64_t deadline_ns, bp_open_files *ret_process,
                                  bugpack_error *error);

/*
 * Gives each file that is a socket its `socket`: its protocol, and what the tables of the network
 * namespace of the process say. `fds_fd` is /proc/<pid>/fd. False without memory.
 */
bool bp_open_sockets_read(int fds_fd, uint64_t deadline_ns, bp_open_files *process);

/*
 * Finds who has the other ends of pipes, FIFOs, unix sockets and TCP connections of these
 * processes, by the descriptors of all processes that we may see. NO_MEMORY; what was found before
 * stays. Calls that follow each other share a pass over those.
 */
bugpack_status bp_open_files_find_ends(bp_open_files *processes, size_t count, uint64_t deadline_ns,
                                       bp_fd_search *ret_search, bugpack_error *error);
/* Frees that pass. */
void bp_open_files_forget_ends(void);

/*
 * Finds which other process has an exclusive lock of a file that one of these processes has open
 * for writing, and has no lock of itself: the `locked_by` of each. By /proc/locks, which is read
 * once. Locks of a description (F_OFD_SETLK) name no process. What is not found is not known.
 */
void bp_open_files_find_locks(bp_open_files *processes, size_t count);

#endif
