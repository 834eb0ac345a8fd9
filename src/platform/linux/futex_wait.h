/*
 * For which other thread a thread waits in futex(2), as far as the memory at the futex proves it.
 *
 * Known are futexes with priority inheritance, whose form the kernel defines, and mutexes, rwlocks
 * and threads of glibc on x86-64 and aarch64 (sysdeps/nptl/bits/thread-shared-types.h and the
 * struct_mutex.h and struct_rwlock.h of both). Of anything else nothing is said. Pure.
 */
#ifndef BP_PLATFORM_LINUX_FUTEX_WAIT_H
#define BP_PLATFORM_LINUX_FUTEX_WAIT_H

#include "platform/linux/syscall_name.h"
#include "platform/linux/thread_syscall.h"

typedef enum bp_futex_kind {
    BP_FUTEX_KIND_MUTEX,
    BP_FUTEX_KIND_RWLOCK, /* held by a writer; the readers that hold one leave no trace in it */
    BP_FUTEX_KIND_THREAD, /* pthread_join */
    BP_FUTEX_KIND_COUNT
} bp_futex_kind;

typedef struct bp_futex_wait {
    bp_futex_kind kind;
    bool is_timed;    /* it gives up after some time */
    uint64_t address; /* of the futex word */
    uint64_t tid;     /* of the thread waited for, as the process itself counts */
} bp_futex_wait;

/* A process, as far as it has to be known. */
typedef struct bp_futex_process {
    bp_syscall_arch arch;
    bool has_glibc;
    /* Offsets in the descriptor of a thread, of glibc 2.34 or later: without them nobody is known
     * to wait for the end of a thread. */
    bool has_descriptors;
    uint64_t descriptor_tid, descriptor_link, link_next;
    void *context;
    /* Copies memory, all of it or false. */
    bool (*read)(void *context, uint64_t address, void *out, size_t bytes);
    /* Whether it has this thread. */
    bool (*has_thread)(void *context, uint64_t tid);
} bp_futex_process;

/* Whether this is a wait on a futex without end or with one: else no memory need be read. */
bool bp_futex_wait_is_possible(bp_syscall_arch arch, const bp_thread_syscall *syscall);

/* False where it is not known for whom the thread waits, if for any. One reading of memory that
 * changes: who believes it has read the same twice. */
bool bp_futex_wait_find(const bp_futex_process *process, const bp_thread_syscall *syscall,
                        bp_futex_wait *ret_wait);

#endif
