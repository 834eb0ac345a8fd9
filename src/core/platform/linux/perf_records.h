/*
 * The records that the kernel writes into a ring of perf_event_open(2): samples with the registers
 * and the top of the stack of a thread. Pure.
 */
#ifndef BP_PLATFORM_LINUX_PERF_RECORDS_H
#define BP_PLATFORM_LINUX_PERF_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The size of a record has 16 bits. */
enum { BP_PERF_RECORD_BYTES = 65536, BP_PERF_REGISTER_MAX = 33 };

/* The registers of a processor: which are asked for (asm/perf_regs.h), and their DWARF numbers in
 * the order in which they are recorded, ascending by bit. */
typedef struct bp_perf_registers {
    uint64_t mask;
    unsigned count, stack_pointer; /* the second is a DWARF number, as is the next */
    unsigned program_counter;
    unsigned char numbers[BP_PERF_REGISTER_MAX];
} bp_perf_registers;

extern const bp_perf_registers bp_perf_registers_x86_64, bp_perf_registers_aarch64;

/* The registers of this build; NULL: it is for another processor, or of 32 bits. */
const bp_perf_registers *bp_perf_registers_here(void);

/* The fields that a sample is asked for; a reader expects just these. */
enum { BP_PERF_SAMPLE_TYPE = 1 << 1 | 1 << 2 | 1 << 12 | 1 << 13 }; /* TID, TIME, REGS and STACK */

/*
 * A part of a ring, whose size is a power of two. `at` and `end` count bytes and never wrap in
 * themselves. In a ring that is written backward, the newest record comes first, and the oldest may
 * be overwritten in part: there it ends.
 */
typedef struct bp_perf_cursor {
    const unsigned char *data;
    size_t data_bytes;
    uint64_t at, end;
    bool is_damaged; /* what is at `at` is no record */
} bp_perf_cursor;

/* The unread part of a ring that is written forward, and of one that is written backward. */
bp_perf_cursor bp_perf_forward(const void *data, size_t data_bytes, uint64_t tail, uint64_t head);
bp_perf_cursor bp_perf_backward(const void *data, size_t data_bytes, uint64_t head);

/* Copies the next record, as it may wrap around. Its length; 0 at the end, or at damage. */
size_t bp_perf_next(bp_perf_cursor *cursor, unsigned char record[BP_PERF_RECORD_BYTES]);

typedef enum bp_perf_kind {
    BP_PERF_OTHER,
    BP_PERF_SAMPLE,
    BP_PERF_LOST,   /* there was no room for some records */
    BP_PERF_MAPPED, /* code was mapped */
    BP_PERF_EXEC    /* the process began another program */
} bp_perf_kind;

typedef struct bp_perf_record {
    bp_perf_kind kind;
    uint64_t lost;      /* of LOST: how many */
    bool is_kernel;     /* of a sample, this and what follows: it ran there */
    bool has_registers; /* of 64 bits; a kernel thread has none */
    int32_t pid, tid;
    uint64_t time_ns;                         /* of the clock that was asked for */
    uint64_t registers[BP_PERF_REGISTER_MAX]; /* by their DWARF numbers */
    const unsigned char *stack;               /* in the record, from the stack pointer on */
    size_t stack_bytes;
} bp_perf_record;

/* False where the record is not what was asked for. */
bool bp_perf_parse(const unsigned char *bytes, size_t byte_count, const bp_perf_registers *set,
                   bp_perf_record *ret_record);

#endif
