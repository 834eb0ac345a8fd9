#include "run/child.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/child_end.h"
#include "platform/thread.h"
#include "run/descriptor.h"

/* As in a shell, for a command that cannot be executed. */
enum { exit_cannot_execute = 126 };

typedef struct monitor_message {
    bp_run_news news;
    pid_t pid; /* the command's */
    bp_run_end end;
} monitor_message;

bp_run_end bp_run_end_of(const siginfo_t *info) {
    return (bp_run_end){.cpu_ns = bp_child_has_ended(info) ? bp_child_cpu_ns(info->si_pid) : 0,
                        .is_signal = info->si_code != CLD_EXITED,
                        .has_core = info->si_code == CLD_DUMPED,
                        .value = info->si_status};
}

static void do_nothing(int number) {
    (void)number;
}

/*
 * Signals of the command's terminal are for the command. A hangup means that the first process has
 * closed its end: it only interrupts the wait.
 */
static void set_signals(void) {
    static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN,
                                  SIGTTOU, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    const struct sigaction interrupt = {.sa_handler = do_nothing}; /* without SA_RESTART */
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)signal(ignored[i], SIG_IGN);
    }
    (void)sigaction(SIGHUP, &interrupt, NULL);
}

/* In the forked process: waits until it is let go, and becomes the command. */
static _Noreturn void execute(const bp_run_child *child) {
    const bp_run_pipes *pipes = &child->pipes;
    const char *command = child->arguments[0], *slash = strrchr(command, '/');
    char word, name[16];
    int failure = 0;
    /* The name that execve will set: a report before that shows it too. */
    (void)snprintf(name, sizeof name, "%s", slash != NULL ? slash + 1 : command);
    bp_thread_set_name(name);
    (void)bp_file_write_all(pipes->failure_to_fd, &failure, sizeof failure);
    if (!bp_descriptor_read_all(pipes->go_from_fd, &word, 1)) {
        _exit(0);
    }
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (pipes->standard[fd] >= 0) {
            (void)dup2(pipes->standard[fd], fd); /* the copy is not close-on-exec */
        }
    }
    (void)signal(SIGPIPE, child->ignores_pipe ? SIG_IGN : SIG_DFL);
    if (child->binary != NULL) {
        (void)execv(child->binary, child->arguments);
        failure = errno;
    }
    if (failure != ENOEXEC) {
        (void)execvp(command, child->arguments);
        failure = errno;
    }
    (void)bp_file_write_all(pipes->failure_to_fd, &failure, sizeof failure);
    _exit(exit_cannot_execute);
}

static pid_t start_command(const bp_run_child *child, int socket_fd) {
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)close(socket_fd);
        execute(child);
    }
    if (pid > 0) {
        /* Before it is let go: it begins in the foreground, in a group of its own. */
        (void)setpgid(pid, pid);
        (void)tcsetpgrp(child->pipes.slave, pid);
    }
    return pid;
}

static bool send_news(int socket_fd, bp_run_news news, pid_t pid, const siginfo_t *info) {
    monitor_message message = {.news = news, .pid = pid};
    if (info != NULL) {
        message.end = bp_run_end_of(info);
    }
    return bp_file_write_all(socket_fd, &message, sizeof message) == 0;
}

/* Reports every stop, and the end, which stays unreaped. False when nobody listens. */
static bool watch(pid_t pid, int socket_fd) {
    for (;;) {
        siginfo_t info;
        memset(&info, 0, sizeof info);
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT) != 0) {
            char byte; /* the other end sends nothing before the command's end; 0: it is closed */
            if (errno == EINTR && recv(socket_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0) {
                continue;
            }
            return false;
        }
        if (bp_child_has_ended(&info)) {
            return send_news(socket_fd, BP_RUN_ENDED, pid, &info);
        }
        siginfo_t taken;
        (void)waitid(P_PID, (id_t)pid, &taken, WSTOPPED | WNOHANG);
        if (!send_news(socket_fd, BP_RUN_STOPPED, pid, &info)) {
            return false;
        }
    }
}

static _Noreturn void be_monitor(bp_run_child *child, int socket_fd) {
    bp_run_pipes *pipes = &child->pipes;
    bp_run_pipes_close_ours(pipes);
    (void)setsid();
    (void)ioctl(pipes->slave, TIOCSCTTY, 0);
    pid_t pid = start_command(child, socket_fd);
    set_signals();
    bp_run_pipes_close_theirs(pipes);
    /* Their readers wait for the end of the command, not of the monitor. */
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    char word = 0;
    bool is_good = pid > 0 && send_news(socket_fd, BP_RUN_STARTED, pid, NULL) &&
                   watch(pid, socket_fd) && bp_descriptor_read_all(socket_fd, &word, 1);
    if (!is_good) {
        (void)tcsetattr(pipes->terminal.fd, TCSANOW, &pipes->terminal.before);
    }
    (void)waitpid(pid, NULL, WNOHANG);
    _exit(0);
}

/* Forks the command, or its monitor where it has a terminal of its own. */
static bugpack_status fork_child(bp_run_child *child, bugpack_error *error) {
    int sockets[2];
    if (child->pipes.slave < 0) {
        child->pid = fork();
        if (child->pid == 0) {
            bp_run_pipes_close_ours(&child->pipes);
            execute(child);
        }
        return child->pid > 0 ? BUGPACK_OK : bp_fail_errno(error, errno, "cannot start a process");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
        return bp_fail_errno(error, errno, "cannot start a process");
    }
    child->monitor_fd = sockets[0];
    child->monitor_pid = fork();
    if (child->monitor_pid == 0) {
        (void)close(sockets[0]);
        be_monitor(child, sockets[1]);
    }
    int fork_errno = errno;
    (void)close(sockets[1]);
    monitor_message message;
    if (child->monitor_pid < 0 ||
        !bp_descriptor_read_all(child->monitor_fd, &message, sizeof message)) {
        return child->monitor_pid < 0
                   ? bp_fail_errno(error, fork_errno, "cannot start a process")
                   : bp_fail(error, BUGPACK_ERR_IO, "cannot start a process: its monitor ended");
    }
    child->pid = message.pid;
    return BUGPACK_OK;
}

bugpack_status bp_run_child_start(char **arguments, bool ignores_pipe, const char *binary,
                                  bp_run_child *ret_child, bugpack_error *error) {
    bp_run_child child = {.arguments = arguments,
                          .ignores_pipe = ignores_pipe,
                          .binary = binary,
                          .pid = -1,
                          .monitor_pid = -1,
                          .monitor_fd = -1};
    bugpack_status status = bp_run_pipes_open(&child.pipes, error);
    if (status == BUGPACK_OK) {
        status = fork_child(&child, error);
    }
    bp_run_pipes_close_theirs(&child.pipes);
    int failure;
    if (status == BUGPACK_OK &&
        !bp_descriptor_read_all(child.pipes.failure_fd, &failure, sizeof failure)) {
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
    bp_run_pipes *pipes = &child->pipes;
    int failure = 0;
    bool is_sent = bp_file_write_all(pipes->go_fd, "g", 1) == 0;
    bp_descriptor_close(&pipes->go_fd);
    /* execve closes the other end: success is an end without an errno. */
    bool has_failed =
        is_sent && bp_descriptor_read_all(pipes->failure_fd, &failure, sizeof failure);
    bp_descriptor_close(&pipes->failure_fd);
    return has_failed ? bp_fail_errno(error, failure, "cannot execute the command") : BUGPACK_OK;
}

bp_run_news bp_run_child_look(const bp_run_child *child, bp_run_end *ret_end) {
    siginfo_t info;
    errno = 0;
    if (!bp_child_look(child->pid, &info)) {
        return errno == 0 || errno == EINTR ? BP_RUN_STARTED : BP_RUN_LOST;
    }
    *ret_end = bp_run_end_of(&info);
    return BP_RUN_ENDED;
}

bp_run_news bp_run_child_read_news(bp_run_child *child, bp_run_end *ret_end) {
    monitor_message message;
    if (!bp_descriptor_read_all(child->monitor_fd, &message, sizeof message)) {
        bp_descriptor_close(&child->monitor_fd);
        return BP_RUN_LOST;
    }
    *ret_end = message.end;
    return message.news;
}

void bp_run_child_reap(bp_run_child *child) {
    bp_run_pipes_close_ours(&child->pipes);
    if (child->monitor_fd >= 0) {
        (void)bp_file_write_all(child->monitor_fd, "k", 1);
        bp_descriptor_close(&child->monitor_fd);
    }
    pid_t pid = child->monitor_pid > 0 ? child->monitor_pid : child->pid;
    if (pid > 0) {
        /* A child that another thread of ours traces returns its stops, too; they are that
         * thread's. */
        siginfo_t info = {.si_code = 0};
        while ((waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) == 0 || errno == EINTR) &&
               !bp_child_has_ended(&info)) {}
        (void)waitpid(pid, NULL, 0);
    }
    child->pid = -1;
    if (child->pipes.owns_keyboard) {
        bp_descriptor_close(&child->pipes.terminal.fd);
    }
}
