#include "run/child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "run/descriptor.h"
#include "run/monitor.h"
#include "run/plumbing.h"

const char *bp_run_stream_name(bp_run_stream stream) {
    static const char *const names[BP_RUN_STREAM_COUNT] = {"stdout", "stderr", "terminal"};
    return names[stream];
}

static bugpack_status fork_monitor(bp_run_plumbing *plumbing, bp_run_child *child,
                                   bugpack_error *error) {
    int sockets[2];
    bugpack_status status = bp_descriptor_socket_pair(sockets, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    child->monitor_fd = sockets[0];
    child->monitor_pid = fork();
    if (child->monitor_pid == 0) {
        (void)close(sockets[0]);
        bp_run_monitor(plumbing, sockets[1]);
    }
    int fork_errno = errno;
    (void)close(sockets[1]);
    bp_run_message message;
    if (child->monitor_pid < 0 ||
        !bp_descriptor_read_all(child->monitor_fd, &message, sizeof message)) {
        return bp_fail_errno(error, fork_errno, "cannot start a process");
    }
    child->pid = message.pid;
    return BUGPACK_OK;
}

static bugpack_status fork_command(bp_run_plumbing *plumbing, bp_run_child *child,
                                   bugpack_error *error) {
    child->pid = fork();
    if (child->pid == 0) {
        bp_run_plumbing_close_ours(plumbing);
        bp_run_plumbing_execute(plumbing);
    }
    return child->pid > 0 ? BUGPACK_OK : bp_fail_errno(error, errno, "cannot start a process");
}

bugpack_status bp_run_child_start(char **arguments, bool ignores_pipe, bp_run_child *ret_child,
                                  bugpack_error *error) {
    bp_run_child child = {.pid = -1,
                          .monitor_pid = -1,
                          .monitor_fd = -1,
                          .go_fd = -1,
                          .failure_fd = -1,
                          .terminal = {.fd = -1},
                          .keyboard_to_fd = -1};
    bp_run_plumbing plumbing = {.arguments = arguments,
                                .ignores_pipe = ignores_pipe,
                                .standard = {-1, -1, -1},
                                .slave = -1,
                                .go_fd = -1,
                                .failure_fd = -1,
                                .outside = {.fd = -1}};
    for (size_t i = 0; i < sizeof plumbing.ours / sizeof plumbing.ours[0]; i++) {
        plumbing.ours[i] = -1;
    }
    bugpack_status status = bp_run_plumbing_open(&plumbing, &child, error);
    if (status == BUGPACK_OK) {
        status = plumbing.is_controlled ? fork_monitor(&plumbing, &child, error)
                                        : fork_command(&plumbing, &child, error);
    }
    bp_run_plumbing_close_theirs(&plumbing);
    int failure;
    if (status == BUGPACK_OK &&
        !bp_descriptor_read_all(child.failure_fd, &failure, sizeof failure)) {
        status = bp_fail(error, BUGPACK_ERR_IO, "cannot start a process: it ended at once");
    }
    if (status != BUGPACK_OK) {
        bp_run_child_reap(&child);
        return status;
    }
    *ret_child = child;
    return BUGPACK_OK;
}

bugpack_status bp_run_child_let_go(bp_run_child *child, bugpack_error *error) {
    int failure = 0;
    bool is_told = bp_descriptor_write_all(child->go_fd, "g", 1);
    bp_descriptor_close(&child->go_fd);
    /* execve closes the other end; without a word in it, that was a success. */
    bool has_failed =
        is_told && bp_descriptor_read_all(child->failure_fd, &failure, sizeof failure);
    bp_descriptor_close(&child->failure_fd);
    if (!has_failed) {
        return BUGPACK_OK;
    }
    return bp_fail_errno(error, failure, "cannot execute the command");
}

bool bp_run_child_has_ended(const bp_run_child *child, bp_run_end *ret_end) {
    siginfo_t info;
    memset(&info, 0, sizeof info);
    if (waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
        info.si_pid == 0 || !bp_run_is_end(&info)) {
        return false;
    }
    *ret_end = bp_run_end_of(&info);
    return true;
}

bp_run_news bp_run_child_read_news(bp_run_child *child, bp_run_end *ret_end) {
    bp_run_message message;
    if (!bp_descriptor_read_all(child->monitor_fd, &message, sizeof message)) {
        bp_descriptor_close(&child->monitor_fd);
        return BP_RUN_LOST;
    }
    *ret_end = message.end;
    return message.news;
}

static void wait_for(pid_t pid) {
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR) {}
}

void bp_run_child_reap(bp_run_child *child) {
    bp_descriptor_close(&child->go_fd);
    bp_descriptor_close(&child->failure_fd);
    for (size_t i = 0; i < child->output_count; i++) {
        bp_descriptor_close(&child->outputs[i].from_fd);
    }
    child->keyboard_to_fd = -1;
    if (child->monitor_fd >= 0) {
        (void)bp_descriptor_write_all(child->monitor_fd, "k", 1);
        bp_descriptor_close(&child->monitor_fd);
    }
    wait_for(child->monitor_pid > 0 ? child->monitor_pid : child->pid);
    child->pid = -1;
    if (child->owns_keyboard) {
        bp_descriptor_close(&child->terminal.fd);
    }
}
