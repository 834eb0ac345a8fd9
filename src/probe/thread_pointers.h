/*
 * The thread pointers of a running glibc process, without stopping it. Linux only.
 *
 * libc.so.6 has constants for libthread_db that describe its thread structures
 * (nptl_db/structs.def). We read them from the file and walk the lists of threads through
 * process_vm_readv. docs/ARCHITECTURE.md says why not with libthread_db itself.
 */
#ifndef BP_PROBE_THREAD_POINTERS_H
#define BP_PROBE_THREAD_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "probe/elf_object.h"

/* The thread structures of one libc.so.6. */
typedef struct bp_libc_layout {
    uint64_t rtld_pointer;    /* address, in the file, of a pointer to the loader's variables */
    uint64_t lists[2];        /* offsets in there of two list heads */
    uint64_t link_next;       /* offset of the next pointer in a list's link */
    uint64_t descriptor_link; /* offset of the link in a thread's descriptor */
    uint64_t descriptor_tid;  /* … of its id, 32 bits */
    uint64_t descriptor_bytes;
} bp_libc_layout;

/* Reads the constants. False when this is no libc.so.6 of 2.34 or later, which has the list. */
bool bp_libc_layout_read(bp_elf_object *libc, bp_libc_layout *ret_layout);

typedef struct bp_thread_pointer {
    uint64_t tid;
    uint64_t pointer;
    uint64_t tid_address; /* address of its id in the process */
} bp_thread_pointer;

/*
 * Lists the threads, ascending by tid. Threads come and go meanwhile, so a running one can be
 * missing; a listed thread had its id in its descriptor. `thread_max` bounds the walk. Returns 0 or
 * an errno: ENOMEM, EPERM, ESRCH, EFAULT. The caller frees `ret_pointers`.
 */
int bp_thread_pointers_list(pid_t pid, const bp_libc_layout *layout, uint64_t libc_base,
                            size_t thread_max, bp_thread_pointer **ret_pointers, size_t *ret_count);

/* The entry of a thread, or NULL. */
const bp_thread_pointer *bp_thread_pointers_find(const bp_thread_pointer *pointers, size_t count,
                                                 uint64_t tid);

#endif
