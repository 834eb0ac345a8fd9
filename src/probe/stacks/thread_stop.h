/*
 * Reads the registers of a thread by stopping it for an instant.
 *
 * PTRACE_SEIZE and PTRACE_INTERRUPT, never ATTACH: a tracer killed between ATTACH and its wait
 * leaves the target stopped for good; after SEIZE the kernel resumes it. Never EXITKILL, which
 * would kill the target too. Linux only.
 */
#ifndef BP_STACKS_THREAD_STOP_H
#define BP_STACKS_THREAD_STOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/thread_heap.h"
#include "platform/crash_page.h"

/* Copied from the stack pointer on. */
#define BP_STACK_COPY_BYTES ((size_t)256 << 10)

#define BP_REGISTER_MAX 32

/* The start of a thread's unwinding: its registers, and a copy of its stack. */
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

/*
 * Reads the thread pointer of thread `tid`, which has `timeout_ms` to stop. A signal that it
 * stopped for is delivered on, and a stopped thread (SIGSTOP) stays stopped. Returns NONE, or the
 * step that failed with its errno. The calling thread is the tracer and must end soon: one that did
 * not stop in time is released only then.
 */
bp_heap_failure bp_thread_stop_read_pointer(pid_t tid, uint32_t timeout_ms, uint64_t *ret_pointer,
                                            int *ret_errno);

/*
 * Copies the registers and the stack of a thread of process `pid`, into `copy`, whose stack is set.
 * The thread did not run for at most `ret_pause_ns`. 0 or an errno: ESRCH when it has ended, EPERM
 * when it may not be traced, ETIMEDOUT, ENOTSUP for a program of 32 bits. The rest as above, but
 * the tracer is a thread that this call starts: the kernel releases what a tracer has not let go
 * when the tracer ends.
 *
 * A system call that the thread is in is begun again by the kernel, or fails with EINTR if it is
 * one of those that signal(7) lists as interrupted by a stop, epoll_wait among them.
 */
int bp_thread_stop_copy(pid_t pid, pid_t tid, uint32_t timeout_ms, bp_thread_copy *copy,
                        uint64_t *ret_pause_ns);

/* Sets the registers from a user_regs_struct, as ptrace and the notes of a core have it. */
void bp_thread_copy_set_registers(bp_thread_copy *copy, const void *user_regs);

/* A crash page of this processor has the registers of a copy, and then the program counter. */
#if defined(__aarch64__)
enum { BP_CRASH_ARCH_OWN = BP_CRASH_ARCH_AARCH64, BP_CRASH_COUNTER_NUMBER = 32 };
#elif defined(__x86_64__)
enum { BP_CRASH_ARCH_OWN = BP_CRASH_ARCH_X86_64, BP_CRASH_COUNTER_NUMBER = 16 };
#else /* unsupported: no page has registers */
enum { BP_CRASH_ARCH_OWN = BP_CRASH_ARCH_OTHER, BP_CRASH_COUNTER_NUMBER = 0 };
#endif
void bp_thread_copy_to_page(const bp_thread_copy *copy, bp_crash_page *page);

/* Reads the registers of a thread that is stopped, and traced by the calling one, into `copy`. 0 or
 * an errno; ENOTSUP for a program of 32 bits. */
int bp_thread_stop_read_registers(pid_t tid, bp_thread_copy *copy);

/*
 * A helper process that stops threads of our own process: no thread may trace another one of its
 * own process. It and what follows: stop_helper.c. -1 without one.
 */
typedef struct bp_stop_helper {
    int fd;
    bool is_ptracer;
} bp_stop_helper;

/*
 * Starts the bugpack command at `path`. It is no child of ours: the host gets no SIGCHLD for it,
 * and no waitpid(-1) finds it. With `is_ptracer` it may trace us until bp_stop_helper_end, where
 * Yama would forbid it; that takes the only slot of PR_SET_PTRACER.
 *
 * 0 or an errno; ENOTSUP where it would become our child when its parent ends: we are process 1, or
 * a subreaper.
 */
int bp_stop_helper_start(const char *path, bool is_ptracer, bp_stop_helper *ret_helper);

/* It ends by itself when it has nobody to answer, or after half a minute. */
void bp_stop_helper_end(bp_stop_helper *helper);

/* As bp_thread_stop_copy. After ETIMEDOUT or EPROTO the helper is gone, and EPIPE is returned. */
int bp_stop_helper_copy(bp_stop_helper *helper, pid_t tid, bp_thread_copy *copy,
                        uint64_t *ret_pause_ns);

/* The helper's own part: the arguments are its name and the id of the process. An exit status. */
int bp_stop_help(int argument_count, char **arguments);

#endif
