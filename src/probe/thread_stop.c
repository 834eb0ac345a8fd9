#include "probe/thread_stop.h"

#include <elf.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "base/clock.h"

static const uint64_t first_nap_ns = 20000;
static const uint64_t longest_nap_ns = 1000000;

/* waitpid has no deadline, so it is polled. Returns 0 or an errno. */
static int wait_for_stop(pid_t tid, uint32_t timeout_ms, int *ret_status) {
    uint64_t deadline_ns = bp_clock_monotonic_ns() + timeout_ms * BP_NS_PER_MS;
    uint64_t nap_ns = first_nap_ns;
    for (;;) {
        pid_t waited = waitpid(tid, ret_status, __WALL | WNOHANG);
        if (waited == tid) {
            return WIFSTOPPED(*ret_status) ? 0 : ESRCH;
        }
        if (waited < 0 && errno != EINTR) {
            return errno == ECHILD ? ESRCH : errno;
        }
        if (bp_clock_monotonic_ns() >= deadline_ns) {
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

static int read_pointer(pid_t tid, uint64_t *ret_pointer) {
#if defined(__aarch64__)
    uint64_t pointer;
    struct iovec area = {&pointer, sizeof pointer};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_ARM_TLS, &area) != 0) {
        return errno;
    }
    *ret_pointer = pointer;
    return area.iov_len >= sizeof pointer ? 0 : EIO;
#else
    struct user_regs_struct registers;
    struct iovec area = {&registers, sizeof registers};
    if (ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &area) != 0) {
        return errno;
    }
    if (area.iov_len < offsetof(struct user_regs_struct, fs_base) + sizeof registers.fs_base) {
        return EIO; /* a program of 32 bits */
    }
    *ret_pointer = registers.fs_base;
    return 0;
#endif
}

bp_heap_failure bp_thread_stop_read_pointer(pid_t tid, uint32_t timeout_ms, uint64_t *ret_pointer,
                                            int *ret_errno) {
    int status = 0;
    if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) != 0) {
        *ret_errno = errno;
        return BP_HEAP_FAILURE_PTRACE_SEIZE;
    }
    if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) != 0) {
        *ret_errno = errno;
        return BP_HEAP_FAILURE_PTRACE_INTERRUPT;
    }
    *ret_errno = wait_for_stop(tid, timeout_ms, &status);
    if (*ret_errno != 0) {
        return BP_HEAP_FAILURE_WAITPID;
    }
    *ret_errno = read_pointer(tid, ret_pointer);
    (void)ptrace(PTRACE_DETACH, tid, NULL, (void *)signal_of(status));
    return *ret_errno == 0 ? BP_HEAP_FAILURE_NONE : BP_HEAP_FAILURE_GET_REGSET;
}
