/*
 * Where the threads of a process stand, and who waits for whom, without stopping one. Of our own
 * process too. docs/ARCHITECTURE.md explains what is believed.
 */
#ifndef BP_PROCESS_THREADS_H
#define BP_PROCESS_THREADS_H

#include <sys/types.h>

#include <bugpack/error.h>

#include "model/threads.h"

/*
 * Reads the threads of `pid`, 0 for our own process. No further thread is read after `deadline_ns`
 * (monotonic). What could not be read of a thread is unknown; the counts of `ret_process` say why.
 * The first thread's `birth` tells which process had the pid. Only the sizes and places of its
 * memory are taken from what the process wrote, and all of them are checked.
 *
 * Errors: NO_PROCESS, DENIED, NO_MEMORY, IO, UNSUPPORTED (systems other than Linux). The caller
 * releases `ret_process`. Any thread.
 */
bugpack_status bp_threads_read(pid_t pid, uint64_t deadline_ns, bp_process_threads *ret_process,
                               bugpack_error *error);

/*
 * Finds the pipes and sockets on which threads of these processes wait, and who has the other ends:
 * the `file` of each such thread. All processes of the machine are searched, as
 * bp_open_files_find_ends does, only if a thread waits on one that has another end. What the kernel
 * keeps to itself is not known, and no failure. NO_MEMORY.
 */
bugpack_status bp_threads_find_files(bp_process_threads *processes, size_t count,
                                     uint64_t deadline_ns, bp_fd_search *ret_search,
                                     bugpack_error *error);

/* True if a thread is in the same call still, and has not run since it was read. */
bool bp_thread_has_stayed(uint64_t pid, const bp_thread_state *thread);

/*
 * Finds for which other process threads of these processes wait: the `process_wait` of each such
 * thread. After bp_threads_find_files. At most 64 further processes are read. It takes 2 ms of CPU
 * beside a search for the ends of their pipes, and 20 ms more where a file system does not answer
 * whose server is one of the processes. A child or a peer is one only where the chain from it ends
 * in something that does not go on by itself. What may not be read is not known, and no failure.
 * NO_MEMORY.
 */
bugpack_status bp_threads_find_processes(bp_process_threads *processes, size_t count,
                                         uint64_t deadline_ns, bugpack_error *error);

#endif
