/*
 * Memory that processes share, in which a thread waits on a futex: as a semaphore of POSIX, or a
 * lock of Python's multiprocessing. Linux only.
 */
#ifndef BP_PROCESS_SHARED_FUTEX_H
#define BP_PROCESS_SHARED_FUTEX_H

#include <stdbool.h>
#include <stdint.h>

enum { BP_SHARED_FUTEX_NAME_BYTES = 256 };

/*
 * True if no other process has the shared memory mapped at `address` of a process, so that none can
 * wake who waits there. Then `ret_name` is the semaphore's file below /dev/shm, which a process may
 * open yet; "": the memory has no name, and nobody ever will. False also where that is not known:
 * of other memory than anonymous one and that of semaphores, where a process may not be looked at,
 * and after 100 ms of CPU time. `thread_fd` is /proc/<pid>/task/<tid>. Any thread.
 */
bool bp_shared_futex_is_alone(int thread_fd, uint64_t pid, uint64_t address,
                              char ret_name[BP_SHARED_FUTEX_NAME_BYTES]);

#endif
