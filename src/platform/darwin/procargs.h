/*
 * The memory that KERN_PROCARGS2 shows of a process: how many arguments it has, the path that was
 * executed, the arguments, the environment. Pure, without a system header.
 */
#ifndef BP_PLATFORM_DARWIN_PROCARGS_H
#define BP_PLATFORM_DARWIN_PROCARGS_H

#include <stdbool.h>
#include <stddef.h>

/* Pieces of the memory that was parsed; arguments are each ended by NUL, but for a last one that
 * was cut. */
typedef struct bp_darwin_procargs {
    const char *executable; /* ended by NUL; NULL when there is none */
    const char *arguments;
    size_t arguments_bytes;
} bp_darwin_procargs;

/*
 * Finds them. The environment, which may hold secrets, is not part of the result unless the process
 * has overwritten the ends of its arguments. False when the memory is too short or the count makes
 * no sense.
 */
bool bp_darwin_parse_procargs(const char *memory, size_t memory_bytes,
                              bp_darwin_procargs *ret_args);

#endif
