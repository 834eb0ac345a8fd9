#include "stacks/thread_stop.h"

#include <elf.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"
#include "base/lock.h"
#include "platform/thread.h"
#include "process/remote_memory.h"

/* A thread has one tracer: stacks and a profile of one process would refuse each other. */
static bp_lock one_tracer = BP_LOCK_INIT(BP_LOCK_STOP);

/* Page by page: where the first page that is not mapped ends it, what is before is read. */
int bp_thread_copy_stack(bp_thread_copy *copy, pid_t pid) {
    enum { page_bytes = 4096, page_max = BP_STACK_COPY_BYTES / page_bytes };
    struct iovec theirs[page_max];
    const struct iovec ours = {copy->stack, BP_STACK_COPY_BYTES};
    uint64_t at = copy->stack_pointer;
    size_t left_bytes = BP_STACK_COPY_BYTES;
    size_t count = 0;
    for (; count < page_max && left_bytes > 0 && at <= UINT64_MAX - page_bytes; count++) {
        size_t bytes = page_bytes - at % page_bytes;
        bytes = bytes < left_bytes ? bytes : left_bytes;
        theirs[count] = (struct iovec){(void *)(uintptr_t)at, bytes};
        at += bytes;
        left_bytes -= bytes;
    }
    ssize_t copied = process_vm_readv(pid, &ours, 1, theirs, count, 0);
    copy->stack_bytes = copied < 0 ? 0 : (size_t)copied;
    copy->has_read_more = false;
    return copied < 0 ? errno : 0;
}

bool bp_thread_copy_read_word(bp_thread_copy *copy, uint64_t address, uint64_t *ret_word) {
    uint64_t offset = address - copy->stack_pointer;
    if (address >= copy->stack_pointer && copy->stack_bytes >= sizeof *ret_word &&
        offset <= copy->stack_bytes - sizeof *ret_word) {
        memcpy(ret_word, copy->stack + offset, sizeof *ret_word);
        return true;
    }
    copy->has_read_more = true;
    return copy->pid != 0 &&
           bp_remote_read_one(copy->pid, address, ret_word, sizeof *ret_word) == 0;
}

/* A thread that runs on another processor stops within this time; a nap would be longer. */
static const uint64_t busy_ns = 40000;
static const uint64_t first_nap_ns = 20000;
static const uint64_t longest_nap_ns = 1000000;

/* waitpid has no deadline, so it is polled. Returns 0 or an errno. */
static int wait_for_stop(pid_t tid, uint32_t timeout_ms, int *ret_status) {
    uint64_t begin_ns = bp_clock_monotonic_ns();
    uint64_t nap_ns = first_nap_ns;
    for (;;) {
        pid_t waited = waitpid(tid, ret_status, __WALL | WNOHANG);
        if (waited == tid) {
            return WIFSTOPPED(*ret_status) ? 0 : ESRCH;
        }
        if (waited < 0 && errno != EINTR) {
            return errno == ECHILD ? ESRCH : errno;
        }
        uint64_t waited_ns = bp_clock_monotonic_ns() - begin_ns;
        if (waited_ns < busy_ns) {
            continue;
        }
        if (waited_ns >= timeout_ms * BP_NS_PER_MS) {
            return ETIMEDOUT;
        }
        struct timespec nap = {.tv_nsec = (long)nap_ns};
        (void)nanosleep(&nap, NULL);
        nap_ns = nap_ns * 2 < longest_nap_ns ? nap_ns * 2 : longest_nap_ns;
    }
}

/* The signal that caused the stop, to be delivered on; 0 for our own stop, or a group stop of the
 * whole process, which continues by itself (ptrace(2)). */
static long signal_of(int status) {
    return status >> 16 == 0 ? WSTOPSIG(status) : 0;
}

#if defined(__aarch64__) || (defined(__x86_64__) && defined(__LP64__))
/* ENOTSUP for a program of 32 bits, whose set is another one. */
static int read_set(pid_t tid, long which, void *set, size_t byte_count) {
    struct iovec area = {set, byte_count};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)which, &area) != 0) {
        return errno;
    }
    return area.iov_len == byte_count ? 0 : ENOTSUP;
}

int bp_thread_stop_read_registers(pid_t tid, bp_thread_copy *copy) {
    struct user_regs_struct set;
    int result = read_set(tid, NT_PRSTATUS, &set, sizeof set);
    if (result == 0) {
        bp_thread_copy_set_registers(copy, &set);
    }
    return result;
}
#endif

#if defined(__aarch64__)

static int read_pointer(pid_t tid, uint64_t *ret_pointer) {
    return read_set(tid, NT_ARM_TLS, ret_pointer, sizeof *ret_pointer);
}

void bp_thread_copy_set_registers(bp_thread_copy *copy, const void *user_regs) {
    struct user_regs_struct set;
    enum { count = sizeof set.regs / sizeof set.regs[0] };
    memcpy(&set, user_regs, sizeof set);
    for (unsigned i = 0; i < count; i++) {
        copy->registers[i] = set.regs[i];
    }
    copy->registers[count] = set.sp;
    copy->register_count = count + 1;
    copy->stack_pointer = set.sp;
    copy->program_counter = set.pc;
}

#elif defined(__x86_64__) && defined(__LP64__)

static int read_pointer(pid_t tid, uint64_t *ret_pointer) {
    struct user_regs_struct set;
    int result = read_set(tid, NT_PRSTATUS, &set, sizeof set);
    if (result == 0) {
        *ret_pointer = set.fs_base;
    }
    return result;
}

void bp_thread_copy_set_registers(bp_thread_copy *copy, const void *user_regs) {
    struct user_regs_struct set;
    memcpy(&set, user_regs, sizeof set);
    /* In the order of the System V ABI for x86-64, figure 3.36. */
    const uint64_t values[] = {set.rax, set.rdx, set.rcx, set.rbx, set.rsi, set.rdi,
                               set.rbp, set.rsp, set.r8,  set.r9,  set.r10, set.r11,
                               set.r12, set.r13, set.r14, set.r15, set.rip};
    memcpy(copy->registers, values, sizeof values);
    copy->register_count = sizeof values / sizeof values[0];
    copy->stack_pointer = set.rsp;
    copy->program_counter = set.rip;
}

#else /* unsupported: no registers are read on another processor, nor in a build of 32 bits */

static int read_pointer(pid_t tid, uint64_t *ret_pointer) {
    (void)tid;
    (void)ret_pointer;
    return ENOTSUP;
}

void bp_thread_copy_set_registers(bp_thread_copy *copy, const void *user_regs) {
    (void)user_regs;
    copy->register_count = 0;
}

int bp_thread_stop_read_registers(pid_t tid, bp_thread_copy *copy) {
    (void)tid;
    (void)copy;
    return ENOTSUP;
}

#endif

void bp_thread_copy_to_page(const bp_thread_copy *copy, bp_crash_page *page) {
    page->arch = BP_CRASH_ARCH_OWN;
    memcpy(page->registers, copy->registers, copy->register_count * sizeof copy->registers[0]);
    page->registers[BP_CRASH_COUNTER_NUMBER] = copy->program_counter;
    page->register_count = copy->register_count > 0 ? BP_CRASH_COUNTER_NUMBER + 1 : 0;
}

static bp_heap_failure stop(pid_t tid, uint32_t timeout_ms, int *ret_status, int *ret_errno) {
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        *ret_errno = errno;
        return BP_HEAP_FAILURE_PTRACE_SEIZE;
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
        *ret_errno = errno;
        return BP_HEAP_FAILURE_PTRACE_INTERRUPT;
    }
    *ret_errno = wait_for_stop(tid, timeout_ms, ret_status);
    return *ret_errno == 0 ? BP_HEAP_FAILURE_NONE : BP_HEAP_FAILURE_WAITPID;
}

bp_heap_failure bp_thread_stop_read_pointer(pid_t tid, uint32_t timeout_ms, uint64_t *ret_pointer,
                                            int *ret_errno) {
    int status = 0;
    bp_lock_acquire(&one_tracer);
    bp_heap_failure failure = stop(tid, timeout_ms, &status, ret_errno);
    if (failure == BP_HEAP_FAILURE_NONE) {
        *ret_errno = read_pointer(tid, ret_pointer);
        failure = *ret_errno == 0 ? BP_HEAP_FAILURE_NONE : BP_HEAP_FAILURE_GET_REGSET;
        (void)ptrace(PTRACE_DETACH, tid, NULL, (void *)signal_of(status));
    }
    bp_lock_release(&one_tracer);
    return failure;
}

/* One copy, on a thread of its own. */
struct copying {
    pid_t pid, tid;
    uint32_t timeout_ms;
    bp_thread_copy *copy;
    uint64_t pause_ns;
    int result;
};

static void copy_one(struct copying *copying) {
    int status = 0;
    uint64_t begin_ns = bp_clock_monotonic_ns();
    if (stop(copying->tid, copying->timeout_ms, &status, &copying->result) !=
        BP_HEAP_FAILURE_NONE) {
        return;
    }
    copying->result = bp_thread_stop_read_registers(copying->tid, copying->copy);
    if (copying->result == 0) {
        copying->result = bp_thread_copy_stack(copying->copy, copying->pid);
    }
    (void)ptrace(PTRACE_DETACH, copying->tid, NULL, (void *)signal_of(status));
    copying->pause_ns = bp_clock_monotonic_ns() - begin_ns;
    copying->copy->pid = 0;
}

static void *stop_and_copy(void *argument) {
    bp_thread_set_name("bugpack-stop");
    (void)prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0); /* or each nap is 50 µs longer */
    bp_lock_acquire(&one_tracer);
    copy_one(argument);
    bp_lock_release(&one_tracer);
    return NULL;
}

int bp_thread_stop_copy(pid_t pid, pid_t tid, uint32_t timeout_ms, bp_thread_copy *copy,
                        uint64_t *ret_pause_ns) {
    struct copying copying = {pid, tid, timeout_ms, copy, 0, ENOMEM};
    pthread_t tracer;
    if (bp_thread_start(stop_and_copy, &copying, &tracer, NULL) == BUGPACK_OK) {
        (void)pthread_join(tracer, NULL);
    }
    *ret_pause_ns = copying.pause_ns;
    return copying.result;
}
