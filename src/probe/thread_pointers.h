/*
 * The thread pointers of a running glibc process, without stopping it.
 *
 * glibc describes its own thread structures to debuggers in constants of libc.so.6 that are made
 * for libthread_db (nptl_db/structs.def): where the list of threads begins, where in a thread's
 * structure its links and its id are. We read the same constants from the same file and walk the
 * list through process_vm_readv. libthread_db itself would do the walk, but it calls back into
 * global symbols (ps_pdread, …) that a library must not put into its host, and it refuses a process
 * whose glibc is of another version than ours, as in a container. Linux only.
 */
#ifndef BP_PROBE_THREAD_POINTERS_H
#define BP_PROBE_THREAD_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/elf_object.h"

/* What a libc.so.6 says of its threads. */
typedef struct bp_libc_layout {
    uint64_t rtld_pointer;    /* address, in the file, of a pointer to the loader's variables */
    uint64_t lists[2];        /* offsets in there of two list heads */
    uint64_t link_next;       /* offset of the next pointer in a list's link */
    uint64_t descriptor_link; /* offset of the link in a thread's descriptor */
    uint64_t descriptor_tid;  /* … of its id, 32 bits */
    uint64_t descriptor_bytes;
} bp_libc_layout;

/* Reads the constants. False when this is no libc.so.6 of 2.34 or later, which has the list. */
bool bp_libc_layout_read(const bp_elf_object *libc, bp_libc_layout *ret_layout);

typedef struct bp_thread_pointer {
    uint64_t tid;
    uint64_t pointer;
    uint64_t tid_address; /* in the process: there its id stands as long as it lives */
} bp_thread_pointer;

/*
 * Lists the threads, ascending by tid. Threads come and go while the list is walked, so one that
 * lives can be missing; a thread that is listed had its id in its descriptor. `thread_max` bounds
 * the walk. Returns 0 or an errno: ENOMEM, EPERM, ESRCH, EFAULT. `ret_pointers` is the caller's to
 * free.
 */
int bp_thread_pointers_list(pid_t pid, const bp_libc_layout *layout, uint64_t libc_base,
                            size_t thread_max, bp_thread_pointer **ret_pointers, size_t *ret_count);

/* The entry of a thread, or NULL. */
const bp_thread_pointer *bp_thread_pointers_find(const bp_thread_pointer *pointers, size_t count,
                                                 uint64_t tid);

#endif
