#include "run/monitor.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "platform/child_end.h"
#include "run/descriptor.h"

bp_run_end bp_run_end_of(const siginfo_t *info) {
    return (bp_run_end){.is_signal = info->si_code != CLD_EXITED,
                        .has_core = info->si_code == CLD_DUMPED,
                        .value = bp_child_end_status(info)};
}

bool bp_run_is_end(const siginfo_t *info) {
    return info->si_code == CLD_EXITED || info->si_code == CLD_KILLED ||
           info->si_code == CLD_DUMPED;
}

static void do_nothing(int number) {
    (void)number;
}

/*
 * Signals of the command's terminal are for the command. A hangup means that our maker has closed
 * its end: it only interrupts the wait, so that we look.
 */
static void set_signals(void) {
    static const int ignored[] = {SIGINT,  SIGQUIT, SIGTERM, SIGTSTP, SIGTTIN,
                                  SIGTTOU, SIGPIPE, SIGUSR1, SIGUSR2, SIGALRM};
    struct sigaction action;
    memset(&action, 0, sizeof action);
    (void)sigemptyset(&action.sa_mask);
    action.sa_handler = SIG_IGN;
    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        (void)sigaction(ignored[i], &action, NULL);
    }
    action.sa_handler = do_nothing;
    (void)sigaction(SIGHUP, &action, NULL);
}

static pid_t start_command(bp_run_plumbing *plumbing, int socket_fd) {
    pid_t pid = fork();
    if (pid == 0) {
        (void)setpgid(0, 0);
        (void)close(socket_fd);
        bp_run_plumbing_execute(plumbing);
    }
    if (pid > 0) {
        /* Before anybody lets it go: it begins in the foreground, in a group of its own. */
        (void)setpgid(pid, pid);
        (void)tcsetpgrp(plumbing->slave, pid);
    }
    return pid;
}

static bool tell(int socket_fd, bp_run_news news, pid_t pid, const siginfo_t *info) {
    bp_run_message message = {.news = news, .pid = pid};
    if (info != NULL) {
        message.end = bp_run_end_of(info);
    }
    return bp_descriptor_write_all(socket_fd, &message, sizeof message);
}

/* Whether the other end of the socket is closed: it sends nothing before the command's end. */
static bool is_left_alone(int socket_fd) {
    char byte;
    return recv(socket_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

/* Tells of every stop, and of the end, which is left unreaped. False when nobody listens. */
static bool watch(pid_t pid, int socket_fd) {
    for (;;) {
        siginfo_t info;
        memset(&info, 0, sizeof info);
        if (waitid(P_PID, (id_t)pid, &info, WEXITED | WSTOPPED | WNOWAIT) != 0) {
            if (errno == EINTR && !is_left_alone(socket_fd)) {
                continue;
            }
            return false;
        }
        if (bp_run_is_end(&info)) {
            return tell(socket_fd, BP_RUN_ENDED, pid, &info);
        }
        siginfo_t taken;
        (void)waitid(P_PID, (id_t)pid, &taken, WSTOPPED | WNOHANG);
        if (!tell(socket_fd, BP_RUN_STOPPED, pid, &info)) {
            return false;
        }
    }
}

_Noreturn void bp_run_monitor(bp_run_plumbing *plumbing, int socket_fd) {
    bp_run_plumbing_close_ours(plumbing);
    (void)setsid();
    (void)ioctl(plumbing->slave, TIOCSCTTY, 0);
    pid_t pid = start_command(plumbing, socket_fd);
    set_signals();
    bp_run_plumbing_close_theirs(plumbing);
    /* Whoever reads from these waits for the command's end, not for ours. */
    (void)close(STDOUT_FILENO);
    (void)close(STDERR_FILENO);
    char word = 0;
    bool is_good = pid > 0 && tell(socket_fd, BP_RUN_NOTHING, pid, NULL) && watch(pid, socket_fd) &&
                   bp_descriptor_read_all(socket_fd, &word, 1);
    if (!is_good) {
        (void)tcsetattr(plumbing->outside.fd, TCSANOW, &plumbing->outside.before);
    }
    (void)waitpid(pid, NULL, WNOHANG);
    _exit(0);
}
