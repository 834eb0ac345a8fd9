#include "run/through.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/spawn.h"
#include "base/status.h"
#include "platform/child_end.h"
#include "run/descriptor.h"

enum { look_ms = 50, end_ms = 5, killed_ms = 2000, piece_bytes = 16 * 1024 };

extern char **environ;

/* A program while it runs. */
struct running {
    const bp_run_through *through;
    pid_t pid;           /* 0: it is reaped */
    int out_fd, said_fd; /* -1: at the end */
    size_t said_count;
    bp_run_program_end end;
};

static int start(const bp_run_through *through, int out_fd, int said_fd, pid_t *ret_pid) {
    bp_spawn spawn;
    int result = bp_spawn_init(&spawn, POSIX_SPAWN_SETPGROUP);
    if (result != 0) {
        return result;
    }
    (void)posix_spawnattr_setpgroup(&spawn.attributes, 0);
    result = bp_spawn_streams(&spawn, (const int[]){-1, out_fd, said_fd});
    if (result == 0) {
        result = posix_spawnp(ret_pid, through->arguments[0], &spawn.actions, &spawn.attributes,
                              (char *const *)(uintptr_t)through->arguments, environ);
    }
    bp_spawn_release(&spawn);
    return result;
}

static bugpack_status move_output(struct running *running, bugpack_error *error) {
    char piece[piece_bytes];
    ssize_t count = read(running->out_fd, piece, sizeof piece);
    if (count > 0) {
        running->end.has_printed = true;
        bugpack_status status =
            running->through->sink(running->through->context, piece, (size_t)count);
        return status == BUGPACK_OK
                   ? BUGPACK_OK
                   : bp_fail(error, status, "what %s printed was not kept: %s",
                             running->through->arguments[0], bugpack_status_name(status));
    }
    if (count == 0 || errno != EINTR) {
        bp_descriptor_close(&running->out_fd);
    }
    return BUGPACK_OK;
}

/* The beginning of what it says is kept, as one line. */
static void move_said(struct running *running) {
    char piece[512];
    ssize_t count = read(running->said_fd, piece, sizeof piece);
    if (count == 0 || (count < 0 && errno != EINTR)) {
        bp_descriptor_close(&running->said_fd);
    }
    char *said = running->end.said;
    for (ssize_t i = 0; i < count && running->said_count < sizeof running->end.said - 1; i++) {
        said[running->said_count++] = piece[i] == '\n' || piece[i] == '\0' ? ' ' : piece[i];
    }
}

static bugpack_status check_limits(const struct running *running, bugpack_error *error) {
    const bp_run_through *through = running->through;
    if (through->is_cancelled()) {
        return bp_fail(error, BUGPACK_ERR_CANCELLED, "the report was cancelled");
    }
    if (bp_clock_monotonic_ns() >= through->deadline_ns) {
        return bp_fail(error, BUGPACK_ERR_TIMEOUT, "%s was not done in time",
                       through->arguments[0]);
    }
    return BUGPACK_OK;
}

static void reap(struct running *running, int flags) {
    pid_t pid;
    do {
        pid = waitpid(running->pid, &running->end.wait_status, flags);
    } while (pid < 0 && errno == EINTR);
    running->pid = pid == 0 ? running->pid : 0;
}

/* A program that waits in the kernel for a disk or a server cannot be killed: it is left. */
static void reap_killed(struct running *running) {
    running->end.wait_status = SIGKILL;
    for (unsigned waited_ms = 0; running->pid != 0 && waited_ms < killed_ms; waited_ms += end_ms) {
        reap(running, WNOHANG);
        if (running->pid != 0) {
            (void)poll(NULL, 0, end_ms);
        }
    }
}

/* Until its output has ended and it has been reaped. */
static bugpack_status relay(struct running *running, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    while (status == BUGPACK_OK && (running->out_fd >= 0 || running->pid != 0)) {
        struct pollfd fds[] = {{running->out_fd, POLLIN, 0}, {running->said_fd, POLLIN, 0}};
        if (poll(fds, 2, running->out_fd < 0 ? end_ms : look_ms) < 0 && errno != EINTR) {
            status =
                bp_fail_errno(error, errno, "cannot wait for %s", running->through->arguments[0]);
        }
        if (fds[1].revents != 0) {
            move_said(running);
        }
        if (fds[0].revents != 0) {
            status = move_output(running, error);
        }
        if (running->out_fd < 0 && running->pid != 0) {
            reap(running, WNOHANG);
        }
        if (status == BUGPACK_OK) {
            status = check_limits(running, error);
        }
    }
    return status;
}

bugpack_status bp_run_judge(const bp_run_through *through, const bp_run_program_end *end,
                            bugpack_error *error) {
    const char *name = through->arguments[0];
    int wait_status = end->wait_status; /* Apple's macros take its address */
    if (WIFSIGNALED(wait_status)) {
        return bp_fail(error, BUGPACK_ERR_IO, "%s was ended by signal %d", name,
                       WTERMSIG(wait_status));
    }
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0) {
        return bp_fail(error, BUGPACK_ERR_IO, "%s failed%s%s", name,
                       end->said[0] != '\0' ? ": " : "", end->said);
    }
    return end->has_printed ? BUGPACK_OK
                            : bp_fail(error, BUGPACK_ERR_IO, "%s printed nothing", name);
}

bugpack_status bp_run_program(const bp_run_through *through, bp_run_program_end *ret_end,
                              bugpack_error *error) {
    struct running running = {.through = through, .out_fd = -1, .said_fd = -1};
    int out[2] = {-1, -1}, said[2] = {-1, -1};
    pid_t group = 0;
    bugpack_status status = bp_descriptor_pipe(out, error);
    if (status == BUGPACK_OK) {
        status = bp_descriptor_pipe(said, error);
    }
    if (status == BUGPACK_OK) {
        int failure = start(through, out[1], through->joins_error ? out[1] : said[1], &group);
        if (failure != 0) {
            group = 0;
            status = failure == ENOENT
                         ? bp_fail(error, BUGPACK_ERR_IO, "%s is not installed, or not in PATH",
                                   through->arguments[0])
                         : bp_fail_errno(error, failure, "cannot run '%s'", through->arguments[0]);
        }
    }
    bp_descriptor_close(&out[1]);
    bp_descriptor_close(&said[1]);
    running.out_fd = out[0];
    running.said_fd = said[0];
    running.pid = group;
    if (status == BUGPACK_OK) {
        status = relay(&running, error);
        if (running.pid != 0) { /* its group is no other's while it is not reaped */
            siginfo_t info;
            /* It may have ended, and a process that it started have its output. */
            running.end.was_killed = !bp_child_look(running.pid, &info);
            (void)kill(-group, SIGKILL);
            reap_killed(&running);
        }
    }
    bp_descriptor_close(&running.out_fd);
    bp_descriptor_close(&running.said_fd);
    if (status == BUGPACK_OK || status == BUGPACK_ERR_TIMEOUT) {
        /* Without the spaces that newlines at the end have become. */
        while (running.said_count > 0 && running.end.said[running.said_count - 1] == ' ') {
            running.end.said[--running.said_count] = '\0';
        }
        *ret_end = running.end;
    }
    return status;
}
