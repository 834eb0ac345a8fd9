#include "stacks/thread_stop.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"

/* The library and the command may be of different versions. */
static const uint64_t answer_magic = 0x32706f7473706762; /* "bgpstop2" */

static const uint32_t stop_timeout_ms = 200;
static const uint64_t answer_timeout_ns = BP_NS_PER_SEC;
static const unsigned helper_max_secs = 30;
static const size_t between_stack_bytes = 65536;

/* The stack follows. */
struct answer {
    uint64_t magic, pause_ns;
    bp_thread_copy copy;
    int32_t result; /* an errno; then no stack follows */
};

/*
 * In a process between us and the helper, which shares our memory and for which the calling thread
 * waits, as after vfork. It ends without a signal or handlers, and the helper gets another parent.
 */
static int start_unseen(int (*start)(void *context), void *context) {
    char *stack = mmap(NULL, between_stack_bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (stack == MAP_FAILED) {
        return errno;
    }
    pid_t between = clone(start, stack + between_stack_bytes, CLONE_VM | CLONE_VFORK, context);
    int result = between < 0 ? errno : 0;
    while (between > 0 && waitpid(between, NULL, __WCLONE) < 0 && errno == EINTR) {}
    (void)munmap(stack, between_stack_bytes);
    return result;
}

static bool would_be_our_child(void) {
    int is_subreaper = 0;
    (void)prctl(PR_GET_CHILD_SUBREAPER, &is_subreaper, 0, 0, 0);
    return getpid() == 1 || is_subreaper != 0;
}

int bp_stop_helper_start(const char *path, bool is_ptracer, bp_stop_helper *ret_helper) {
    static char *const no_environment[] = {NULL};
    char pid_text[24];
    int ends[2];
    bp_child child;
    if (would_be_our_child()) {
        return ENOTSUP;
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
        return errno;
    }
    (void)snprintf(pid_text, sizeof pid_text, "%ld", (long)getpid());
    const char *const arguments[] = {"bugpack", "copy-threads", pid_text, NULL};
    const bp_child_plan plan = {
        .path = path,
        .arguments = arguments,
        .environment = no_environment,
        .fds = {ends[1], BP_CHILD_NULL, BP_CHILD_NULL, BP_CHILD_OURS},
        .starter = start_unseen,
    };
    int result = bp_child_start(&plan, &child);
    bp_file_close(ends[1]);
    if (result != 0) {
        bp_file_close(ends[0]);
        return result;
    }
    if (is_ptracer) {
        (void)prctl(PR_SET_PTRACER, child.pid, 0, 0, 0); /* EINVAL: no Yama, which is fine */
    }
    *ret_helper = (bp_stop_helper){ends[0], is_ptracer};
    return 0;
}

void bp_stop_helper_end(bp_stop_helper *helper) {
    if (helper->fd >= 0 && helper->is_ptracer) {
        (void)prctl(PR_SET_PTRACER, 0, 0, 0, 0);
    }
    bp_file_close(helper->fd);
    helper->fd = -1;
}

/* All of it, or false. */
static bool receive(int fd, void *out, size_t byte_count, uint64_t deadline_ns) {
    unsigned char *at = out;
    while (byte_count > 0) {
        struct pollfd waited = {fd, POLLIN, 0};
        int left_ms = bp_clock_poll_ms(deadline_ns);
        if (left_ms == 0) {
            return false;
        }
        (void)poll(&waited, 1, left_ms);
        ssize_t count = waited.revents != 0 ? recv(fd, at, byte_count, MSG_DONTWAIT) : -1;
        if (count == 0 || (count < 0 && waited.revents != 0 && errno != EAGAIN && errno != EINTR)) {
            return false;
        }
        at += count > 0 ? count : 0;
        byte_count -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

static bool send_all(int fd, const void *bytes, size_t byte_count) {
    const unsigned char *at = bytes;
    while (byte_count > 0) {
        ssize_t count = send(fd, at, byte_count, MSG_NOSIGNAL);
        if (count < 0 && errno != EINTR) {
            return false;
        }
        at += count > 0 ? count : 0;
        byte_count -= count > 0 ? (size_t)count : 0;
    }
    return true;
}

int bp_stop_helper_copy(bp_stop_helper *helper, pid_t tid, bp_thread_copy *copy,
                        uint64_t *ret_pause_ns) {
    struct answer answer;
    uint64_t deadline_ns = bp_clock_monotonic_ns() + answer_timeout_ns;
    int32_t number = tid;
    if (helper->fd < 0) {
        return EPIPE;
    }
    if (!send_all(helper->fd, &number, sizeof number) ||
        !receive(helper->fd, &answer, sizeof answer, deadline_ns) || answer.magic != answer_magic ||
        answer.copy.register_count > BP_REGISTER_MAX ||
        answer.copy.stack_bytes > BP_STACK_COPY_BYTES ||
        !receive(helper->fd, copy->stack, answer.copy.stack_bytes, deadline_ns)) {
        bp_stop_helper_end(helper);
        return bp_clock_monotonic_ns() >= deadline_ns ? ETIMEDOUT : EPROTO;
    }
    if (answer.result != 0) {
        return answer.result;
    }
    answer.copy.stack = copy->stack;
    *copy = answer.copy;
    *ret_pause_ns = answer.pause_ns;
    return 0;
}

static bool answer(pid_t pid, int32_t tid) {
    static unsigned char stack[BP_STACK_COPY_BYTES];
    struct answer answer = {.magic = answer_magic, .copy.stack = stack};
    if (syscall(SYS_tgkill, pid, tid, 0) != 0) {
        answer.result = errno; /* a thread of another process */
    } else {
        answer.result =
            bp_thread_stop_copy(pid, tid, stop_timeout_ms, &answer.copy, &answer.pause_ns);
    }
    answer.copy.stack_bytes = answer.result == 0 ? answer.copy.stack_bytes : 0;
    return send_all(STDIN_FILENO, &answer, sizeof answer) &&
           send_all(STDIN_FILENO, stack, answer.copy.stack_bytes);
}

int bp_stop_help(int argument_count, char **arguments) {
    char *end;
    int32_t tid;
    long pid = argument_count == 2 ? strtol(arguments[1], &end, 10) : 0;
    /* With privileges of its file it would copy what its caller may not read. */
    if (pid <= 0 || pid > INT32_MAX || *end != '\0' || getauxval(AT_SECURE) != 0) {
        return 2;
    }
#ifdef SYS_close_range
    (void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0u, 0);
#endif
    (void)alarm(helper_max_secs);
    uint64_t deadline_ns = bp_clock_monotonic_ns() + helper_max_secs * BP_NS_PER_SEC;
    while (receive(STDIN_FILENO, &tid, sizeof tid, deadline_ns)) {
        if (!answer((pid_t)pid, tid)) {
            return 1;
        }
    }
    return 0;
}
