/*
 * The names of system calls. Pure.
 */
#ifndef BP_PLATFORM_LINUX_SYSCALL_NAME_H
#define BP_PLATFORM_LINUX_SYSCALL_NAME_H

#include <stdint.h>

typedef enum bp_syscall_arch {
    BP_SYSCALL_UNKNOWN, /* numbers have no names */
    BP_SYSCALL_X86_64,
    BP_SYSCALL_AARCH64
} bp_syscall_arch;

/* Of this program. */
#if defined(__aarch64__)
#define BP_SYSCALL_OWN_ARCH BP_SYSCALL_AARCH64
#elif defined(__x86_64__) && defined(__LP64__)
#define BP_SYSCALL_OWN_ARCH BP_SYSCALL_X86_64
#else
#define BP_SYSCALL_OWN_ARCH BP_SYSCALL_UNKNOWN
#endif

/* NULL for a number without a name. Static. */
const char *bp_syscall_name(bp_syscall_arch arch, uint64_t number);

#endif
