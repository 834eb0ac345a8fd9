/*
 * Reads the memory of a running process with process_vm_readv, which neither attaches nor stops.
 * Linux only.
 */
#ifndef BP_PROCESS_REMOTE_MEMORY_H
#define BP_PROCESS_REMOTE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copies memory of a process, all of it or false. */
typedef bool bp_memory_reader(void *context, uint64_t address, void *out, size_t bytes);

/* One piece to read. */
typedef struct bp_remote_piece {
    uint64_t address;
    void *out;
    size_t bytes;
} bp_remote_piece;

#define BP_REMOTE_PIECE_MAX 8

/*
 * Reads all pieces, at most BP_REMOTE_PIECE_MAX, in one call. Returns 0, or an errno: EFAULT when
 * one of them is not mapped, ESRCH, EPERM. What was read of the others stays in `out`.
 */
int bp_remote_read(pid_t pid, const bp_remote_piece *pieces, size_t piece_count);

/* One piece. */
int bp_remote_read_one(pid_t pid, uint64_t address, void *out, size_t bytes);

#endif
