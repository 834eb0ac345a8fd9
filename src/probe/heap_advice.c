#include "probe/heap_advice.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const char *what_failed(bp_heap_failure failure) {
    static const char *const sentences[BP_HEAP_FAILURE_COUNT] = {
        [BP_HEAP_FAILURE_SELF] = "bugpack does not look into its own process",
        [BP_HEAP_FAILURE_PID_MISSING] = "there is no such process, or it has ended",
        [BP_HEAP_FAILURE_READLINK] = "the executable of the process cannot be found out",
        [BP_HEAP_FAILURE_MAPS_READ] = "the memory map of the process cannot be read",
        [BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND] = "the process has no jemalloc that could be found",
        [BP_HEAP_FAILURE_THREAD_POINTER] =
            "the C library of the process does not tell where its threads keep their data",
        [BP_HEAP_FAILURE_PTRACE_SEIZE] =
            "the threads of the process cannot be traced, as while a debugger has them",
        [BP_HEAP_FAILURE_PTRACE_INTERRUPT] =
            "the threads of the process did not stop when asked to",
        [BP_HEAP_FAILURE_WAITPID] = "the threads of the process did not stop when asked to",
        [BP_HEAP_FAILURE_GET_REGSET] = "the registers of the threads cannot be read",
        [BP_HEAP_FAILURE_VM_READV] = "the memory of the process cannot be read",
        [BP_HEAP_FAILURE_TLS_ARITHMETIC] =
            "the counters would lie where no memory of a thread can be",
        [BP_HEAP_FAILURE_UNSUPPORTED] = "this system has no way to look into another process"};
    const char *sentence = failure < BP_HEAP_FAILURE_COUNT ? sentences[failure] : NULL;
    return sentence != NULL ? sentence : "the counters cannot be read";
}

/* By Yama's scope (ptrace(2), "/proc/sys/kernel/yama/ptrace_scope"). */
static const char *what_to_do(int yama_scope) {
    static const char *const scopes[] = {
        BP_ADVICE_DENIED,
        "Yama allows this for children only (kernel.yama.ptrace_scope is 1): run as root, give "
        "bugpack CAP_SYS_PTRACE, or set it to 0",
        "Yama allows this for administrators only (kernel.yama.ptrace_scope is 2): run as root or "
        "give bugpack CAP_SYS_PTRACE",
        "Yama forbids this to everybody until the next boot (kernel.yama.ptrace_scope is 3)"};
    return scopes[yama_scope >= 1 && yama_scope <= 3 ? yama_scope : 0];
}

void bp_heap_advice(bp_heap_failure failure, int system_errno, int yama_scope, char *out,
                    size_t out_bytes) {
    if (failure == BP_HEAP_FAILURE_READLINK && system_errno == ENOENT) {
        (void)snprintf(
            out, out_bytes,
            "the process has no executable: it is a kernel thread, or its first thread has "
            "ended");
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
