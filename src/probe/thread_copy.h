/*
 * What the unwinding of a thread begins with: its registers, and a copy of its stack. Linux only.
 */
#ifndef BP_PROBE_THREAD_COPY_H
#define BP_PROBE_THREAD_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Copied from the stack pointer on. */
#define BP_STACK_COPY_BYTES ((size_t)256 << 10)

#define BP_REGISTER_MAX 32

typedef struct bp_thread_copy {
    uint64_t stack_pointer, program_counter;
    uint64_t registers[BP_REGISTER_MAX]; /* by their DWARF numbers, from 0 on */
    unsigned register_count;             /* 0: only the two above are known */
    unsigned char *stack;                /* BP_STACK_COPY_BYTES, the caller's */
    size_t stack_bytes;                  /* how many are copied */
    pid_t pid; /* whose memory is read where the copy ends; 0: nobody's, as it has changed since */
    bool has_read_more; /* beyond the copy; or would have */
} bp_thread_copy;

/* Copies the stack of a thread of process `pid`, from the stack pointer to the end of the mapping
 * at most. 0 or an errno; EFAULT when nothing is mapped there. */
int bp_thread_copy_stack(bp_thread_copy *copy, pid_t pid);

/* A word of its memory. */
bool bp_thread_copy_read_word(bp_thread_copy *copy, uint64_t address, uint64_t *ret_word);

#endif
