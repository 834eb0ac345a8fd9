/*
 * Addresses of thread-local variables relative to the thread pointer, in both layouts of Drepper's
 * "ELF Handling For Thread-Local Storage". Pure; all values may come from a malformed file.
 */
#ifndef BP_PROBE_TLS_ADDRESS_H
#define BP_PROBE_TLS_ADDRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef enum bp_tls_arch {
    BP_TLS_X86_64, /* variant II: the executable's block ends at the thread pointer */
    BP_TLS_AARCH64 /* variant I: it begins after the thread control block of 16 bytes */
} bp_tls_arch;

/* The PT_TLS segment of an executable. `alignment` 0 and 1 both mean none. */
typedef struct bp_tls_segment {
    uint64_t address; /* p_vaddr, which need not be a multiple of the alignment */
    uint64_t bytes;   /* p_memsz */
    uint64_t alignment;
} bp_tls_segment;

/*
 * The distance from the thread pointer to `value`, the st_value of a symbol in the executable's own
 * segment. False when the segment makes no sense or the symbol's `symbol_bytes` do not fit into it.
 */
bool bp_tls_executable_offset(bp_tls_arch arch, const bp_tls_segment *segment, uint64_t value,
                              uint64_t symbol_bytes, int64_t *ret_offset);

/*
 * The thread pointer of a glibc thread whose `struct pthread` of `descriptor_bytes` is at
 * `descriptor`: the same address in variant II, the end of the struct in variant I.
 */
bool bp_tls_thread_pointer(bp_tls_arch arch, uint64_t descriptor, uint64_t descriptor_bytes,
                           uint64_t *ret_thread_pointer);

/*
 * Adds a thread pointer, the loader's value of a slot (0 without one), and an offset. False when
 * the slot cannot be a static TLS offset (wrong side of the thread pointer, or over 1 GiB away), or
 * when the sum is null, not a multiple of eight, or not a user-space address.
 */
bool bp_tls_counter_address(bp_tls_arch arch, uint64_t thread_pointer, int64_t slot, bool has_slot,
                            int64_t offset, uint64_t *ret_address);

#endif
