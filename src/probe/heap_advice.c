#include "probe/heap_advice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *what_failed(bp_heap_failure failure) {
    switch (failure) {
    case BP_HEAP_FAILURE_SELF:
        return "bugpack does not look into its own process";
    case BP_HEAP_FAILURE_PID_MISSING:
        return "there is no such process, or it has ended";
    case BP_HEAP_FAILURE_READLINK:
        return "the executable of the process cannot be found out";
    case BP_HEAP_FAILURE_MAPS_READ:
        return "the memory map of the process cannot be read";
    case BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND:
        return "the process has no jemalloc that could be found";
    case BP_HEAP_FAILURE_THREAD_POINTER:
        return "the C library of the process does not tell where its threads keep their data";
    case BP_HEAP_FAILURE_PTRACE_SEIZE:
        return "the threads of the process cannot be traced, as while a debugger has them";
    case BP_HEAP_FAILURE_PTRACE_INTERRUPT:
    case BP_HEAP_FAILURE_WAITPID:
        return "the threads of the process did not stop when asked to";
    case BP_HEAP_FAILURE_GET_REGSET:
        return "the registers of the threads cannot be read";
    case BP_HEAP_FAILURE_VM_READV:
        return "the memory of the process cannot be read";
    case BP_HEAP_FAILURE_TLS_ARITHMETIC:
        return "the counters would lie where no memory of a thread can be";
    case BP_HEAP_FAILURE_UNSUPPORTED:
        return "this system has no way to look into another process";
    default:
        return "the counters cannot be read";
    }
}

/* ptrace(2) has the scopes: "/proc/sys/kernel/yama/ptrace_scope". */
static const char *what_to_do(int yama_scope) {
    switch (yama_scope) {
    case 1:
        return "Yama allows this for children only (kernel.yama.ptrace_scope is 1): run as root, "
               "give "
               "bugpack CAP_SYS_PTRACE, or set it to 0";
    case 2:
        return "Yama allows this for administrators only (kernel.yama.ptrace_scope is 2): run as "
               "root "
               "or give bugpack CAP_SYS_PTRACE";
    case 3:
        return "Yama forbids this to everybody until the next boot (kernel.yama.ptrace_scope is 3)";
    default:
        return "the process is another user's, or protects itself, or a container forbids it: run "
               "as "
               "its user or as root; in a container allow it CAP_SYS_PTRACE";
    }
}

void bp_heap_advice(bp_heap_failure failure, int system_errno, int yama_scope, char *out,
                    size_t out_bytes) {
    if (failure == BP_HEAP_FAILURE_READLINK && system_errno == ENOENT) {
        (void)snprintf(out, out_bytes,
                       "the process has no executable: it is a kernel thread, or is ending");
    } else if (system_errno == EPERM || system_errno == EACCES) {
        (void)snprintf(out, out_bytes, "%s: %s; %s", what_failed(failure), strerror(system_errno),
                       what_to_do(yama_scope));
    } else if (system_errno != 0) {
        (void)snprintf(out, out_bytes, "%s: %s", what_failed(failure), strerror(system_errno));
    } else {
        (void)snprintf(out, out_bytes, "%s", what_failed(failure));
    }
}

int bp_yama_scope_read(void) {
    char digit;
    int fd = open("/proc/sys/kernel/yama/ptrace_scope", O_RDONLY | O_NOCTTY | O_CLOEXEC);
    if (fd < 0) {
        return BP_YAMA_NONE;
    }
    ssize_t count = read(fd, &digit, 1);
    (void)close(fd);
    return count == 1 && digit >= '0' && digit <= '9' ? digit - '0' : BP_YAMA_NONE;
}
