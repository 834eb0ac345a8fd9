#include "process/tool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/spawn.h"

static const uint64_t grace_ns = 100 * BP_NS_PER_MS;

static int start(const bp_tool *tool, int out_fd, pid_t *ret_pid) {
    bp_spawn spawn;
    /* Both are above the numbers of the child: no copy overwrites another one, and each is made, as
     * a copy onto itself would be close-on-exec. */
    int high_out = fcntl(out_fd, F_DUPFD_CLOEXEC, BP_TOOL_EXTRA_FD + 1);
    int high_extra =
        tool->extra_fd < 0 ? -1 : fcntl(tool->extra_fd, F_DUPFD_CLOEXEC, BP_TOOL_EXTRA_FD + 1);
    int result =
        high_out < 0 || (tool->extra_fd >= 0 && high_extra < 0) ? errno : bp_spawn_init(&spawn, 0);
    if (result == 0) {
        result = bp_spawn_streams(&spawn, (const int[]){-1, high_out, -1});
        if (result == 0 && high_extra >= 0) {
            result = posix_spawn_file_actions_adddup2(&spawn.actions, high_extra, BP_TOOL_EXTRA_FD);
        }
        if (result == 0) {
            result = posix_spawn(ret_pid, tool->path, &spawn.actions, &spawn.attributes,
                                 tool->arguments, tool->environment);
        }
        bp_spawn_release(&spawn);
    }
    bp_file_close(high_out);
    bp_file_close(high_extra);
    return result;
}

/* Until the end of what it prints. */
static int read_output(int fd, uint64_t deadline_ns, char *out, size_t out_bytes,
                       size_t *ret_length) {
    size_t length = 0;
    while (length < out_bytes) {
        struct pollfd waited = {fd, POLLIN, 0};
        int left_ms = bp_clock_poll_ms(deadline_ns);
        if (left_ms == 0) {
            return ETIMEDOUT;
        }
        (void)poll(&waited, 1, left_ms);
        ssize_t count = waited.revents != 0 ? read(fd, out + length, out_bytes - length) : -1;
        if (count == 0) {
            *ret_length = length;
            return 0;
        }
        length += count > 0 ? (size_t)count : 0;
    }
    return EPROTO;
}

/* False: it still runs then. Somebody else may have reaped it, and nobody knows how it ended. */
static bool reap(pid_t pid, uint64_t deadline_ns, int *ret_status) {
    static const struct timespec pause = {0, BP_NS_PER_MS};
    pid_t waited;
    while ((waited = waitpid(pid, ret_status, WNOHANG)) == 0 || (waited < 0 && errno == EINTR)) {
        if (bp_clock_monotonic_ns() >= deadline_ns) {
            return false;
        }
        (void)nanosleep(&pause, NULL);
    }
    return true;
}

static int end(pid_t pid, uint64_t deadline_ns) {
    int status = 0;
    if (reap(pid, deadline_ns, &status)) {
        return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : EPROTO;
    }
    (void)kill(pid, SIGTERM);
    if (!reap(pid, bp_clock_monotonic_ns() + grace_ns, &status)) {
        (void)kill(pid, SIGKILL);
        /* It may be in an uninterruptible sleep, or a filter refuses kill. */
        (void)reap(pid, bp_clock_monotonic_ns() + BP_NS_PER_SEC, &status);
    }
    return ETIMEDOUT;
}

int bp_tool_run(const bp_tool *tool, char *out, size_t out_bytes, size_t *ret_length) {
    int output[2];
    pid_t pid = 0;
    size_t length = 0;
    if (pipe2(output, O_CLOEXEC) != 0) {
        return errno;
    }
    int result = start(tool, output[1], &pid);
    bp_file_close(output[1]);
    if (result == 0) {
        result = read_output(output[0], tool->deadline_ns, out, out_bytes, &length);
        int ended = end(pid, result == 0 ? tool->deadline_ns : 0);
        result = result == 0 ? ended : result;
    }
    bp_file_close(output[0]);
    if (result == 0) {
        *ret_length = length;
    }
    return result;
}
