/*
 * The record that a handler of fatal signals leaves in a file of the session directory, which is
 * made and mapped before. It is read by another process, which trusts nothing in it.
 */
#ifndef BP_PLATFORM_CRASH_PAGE_H
#define BP_PLATFORM_CRASH_PAGE_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/id.h"

enum {
    BP_CRASH_STACK_BYTES = 256 * 1024, /* at most, from the stack pointer on */
    BP_CRASH_MAPS_BYTES = 480 * 1024,
    BP_CRASH_THREAD_MAX = 1024,
    BP_CRASH_STACKS_BYTES = 512 * 1024, /* of the other threads together */
    BP_CRASH_MODULE_MAX = 512,
    BP_CRASH_REGISTER_MAX = 40,
    BP_CRASH_BUILD_ID_BYTES = 72,
    BP_CRASH_ABORT_BYTES = 256,
    BP_CRASH_TYPE_BYTES = 256,
    BP_CRASH_MESSAGE_BYTES = 512
};

typedef enum bp_crash_arch {
    BP_CRASH_ARCH_OTHER, /* no registers */
    BP_CRASH_ARCH_X86_64,
    BP_CRASH_ARCH_AARCH64
} bp_crash_arch;

/* A file with a build id, as it was in memory. */
typedef struct bp_crash_module {
    uint64_t start;                         /* of its first mapping */
    char build_id[BP_CRASH_BUILD_ID_BYTES]; /* hexadecimal, with a NUL */
} bp_crash_module;

typedef enum bp_crash_thread_state {
    BP_CRASH_THREAD_UNREAD,  /* it may not be read, or there was no time */
    BP_CRASH_THREAD_RUNNING, /* or ready to run: its stack changes */
    BP_CRASH_THREAD_MOVED,   /* it ran while its stack was copied */
    BP_CRASH_THREAD_BLOCKED, /* in the kernel, and the copy is of one instant */
    BP_CRASH_THREAD_STOPPED  /* of a core, which has its registers */
} bp_crash_thread_state;

/* A thread beside the one that crashed. */
typedef struct bp_crash_thread {
    int32_t tid;
    uint16_t state;                          /* a bp_crash_thread_state */
    uint16_t register_count;                 /* of a core; they are in front of the stack */
    char name[16];                           /* may fill it */
    uint64_t stack_pointer, program_counter; /* of a blocked one, as the rest */
    uint32_t stack_at, stack_bytes;          /* in `stacks`: from the stack pointer on */
} bp_crash_thread;

typedef struct bp_crash_page {
    /* Set when the file is made. */
    char magic[8];
    uint32_t version, size; /* of this struct */
    char session_id[BP_ID_BYTES];
    char reserved[7];

    /* Set by the handler. */
    uint64_t is_begun;
    uint64_t is_of_core; /* no handler made it: stacks/core_file.h */
    int64_t pid, tid;
    bp_instant at;
    int32_t signal, code;
    uint64_t address;               /* of the fault; 0 where the signal has none */
    int64_t sender_pid, sender_uid; /* of a signal that was sent; -1 */
    int64_t system_call;            /* of SIGSYS; -1 */
    char thread_name[16];           /* may fill it */
    uint32_t arch, register_count;  /* a bp_crash_arch */
    uint32_t thread_count, are_threads_cut;
    uint32_t module_count, are_maps_cut;
    uint64_t was_passed_to_host; /* to its own handler, which may have ended the process in another
                                    way */
    uint64_t stack_start, stack_bytes, stacks_bytes, maps_bytes;
    char abort_message[BP_CRASH_ABORT_BYTES];       /* what glibc aborts for, with a NUL; "" */
    uint64_t is_exception_told;                     /* by the host, before its signal */
    char exception_type[BP_CRASH_TYPE_BYTES];       /* mangled, or as told, with a NUL; "": none */
    char exception_message[BP_CRASH_MESSAGE_BYTES]; /* with a NUL; "": none, or not known */
    uint64_t registers[BP_CRASH_REGISTER_MAX];      /* by DWARF number, then others */
    bp_crash_thread threads[BP_CRASH_THREAD_MAX];   /* without `tid` */
    bp_crash_module modules[BP_CRASH_MODULE_MAX];
    unsigned char stack[BP_CRASH_STACK_BYTES];
    unsigned char stacks[BP_CRASH_STACKS_BYTES];
    char maps[BP_CRASH_MAPS_BYTES]; /* whole lines of /proc/self/maps */

    uint64_t check; /* the last to be written: bp_crash_page_check; 0: no crash */
} bp_crash_page;

/* The name of the file in the session directory. */
#define BP_CRASH_PAGE_NAME "crash"

/* The contents of a fresh page. The rest is zero. */
void bp_crash_page_init(bp_crash_page *page, const char *session_id);

/* A hash of all that is set, never 0. The counts must be within bounds. Safe in a signal handler.
 */
uint64_t bp_crash_page_check(const bp_crash_page *page);

typedef enum bp_crash_page_state {
    BP_CRASH_PAGE_UNUSED,  /* no fatal signal was caught */
    BP_CRASH_PAGE_TORN,    /* the process ended while it was written */
    BP_CRASH_PAGE_DAMAGED, /* of another version or session, or not what was written */
    BP_CRASH_PAGE_WHOLE
} bp_crash_page_state;

/* Validates what a file held. After WHOLE all counts are within their bounds, texts end in NUL
 * where it says so, and `maps` ends with a line. */
bp_crash_page_state bp_crash_page_validate(const void *bytes, size_t byte_count,
                                           const char *session_id);

#endif
