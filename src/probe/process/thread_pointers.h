/*
 * The thread pointers of a running glibc process, without stopping it. Linux only.
 *
 * libc.so.6 has constants for libthread_db that describe its thread structures
 * (nptl_db/structs.def). We read them from the file and walk the lists of threads through
 * process_vm_readv. docs/ARCHITECTURE.md says why not with libthread_db itself.
 */
#ifndef BP_PROCESS_THREAD_POINTERS_H
#define BP_PROCESS_THREAD_POINTERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process/elf_object.h"

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
    uint64_t tid; /* first, for bp_array_find_u64 */
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

/*
 * Addresses of thread-local variables relative to the thread pointer, in both layouts of Drepper's
 * "ELF Handling For Thread-Local Storage", by `machine`: on EM_X86_64 (variant II) the executable's
 * block ends at the thread pointer, on EM_AARCH64 (variant I) it begins after the thread control
 * block of 16 bytes. Pure; all values may come from a malformed file.
 */

/*
 * The distance from the thread pointer to `value`, the st_value of a symbol in the executable's own
 * PT_TLS segment, whose address need not be a multiple of its alignment. False when the segment
 * makes no sense or the symbol's `symbol_bytes` do not fit into it.
 */
bool bp_tls_executable_offset(unsigned machine, const Elf64_Phdr *segment, uint64_t value,
                              uint64_t symbol_bytes, int64_t *ret_offset);

/*
 * The thread pointer of a glibc thread whose `struct pthread` of `descriptor_bytes` is at
 * `descriptor`: the same address in variant II, the end of the struct in variant I.
 */
bool bp_tls_thread_pointer(unsigned machine, uint64_t descriptor, uint64_t descriptor_bytes,
                           uint64_t *ret_thread_pointer);

/*
 * Adds a thread pointer, the loader's value of a slot (0 without one), and an offset. False when
 * the slot cannot be a static TLS offset (wrong side of the thread pointer, or over 1 GiB away), or
 * when the sum is null, not a multiple of eight, or not a user-space address.
 */
bool bp_tls_counter_address(unsigned machine, uint64_t thread_pointer, int64_t slot, bool has_slot,
                            int64_t offset, uint64_t *ret_address);

#endif
