/*
 * Finding the keyboard of `bugpack run` where standard input is no terminal, with poll as macOS has
 * it: it does not know /dev/tty.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/check.h"

#include "run/terminal.h"

static bool is_mac;

static bool is_dev_tty(int fd) {
    struct stat device;
    struct stat opened;
    return stat("/dev/tty", &device) == 0 && fstat(fd, &opened) == 0 &&
           opened.st_rdev == device.st_rdev;
}

/* What terminal.c calls in place of poll. */
int mac_poll(struct pollfd *fds, nfds_t count, int timeout_ms);

int mac_poll(struct pollfd *fds, nfds_t count, int timeout_ms) {
    if (is_mac && count == 1 && is_dev_tty(fds->fd)) {
        fds->revents = POLLNVAL;
        return 1;
    }
    return poll(fds, count, timeout_ms);
}

/* Makes a session of our own, with a pseudo-terminal that controls it as standard output. */
static void become_session(bool is_controlled) {
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    CHECK(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
    int slave = open(ptsname(master), O_RDWR | O_NOCTTY);
    CHECK(slave >= 0 && setsid() > 0);
    CHECK(!is_controlled || ioctl(slave, TIOCSCTTY, 0) == 0);
    CHECK(dup2(slave, STDOUT_FILENO) == STDOUT_FILENO);
    CHECK(dup2(open("/dev/null", O_RDWR), STDIN_FILENO) == STDIN_FILENO);
}

static void find_in(bool is_controlled, bool like_mac) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        become_session(is_controlled);
        is_mac = like_mac;
        int fd = bp_run_open_controlling();
        CHECK((fd >= 0) == is_controlled);
        CHECK(fd < 0 || (is_dev_tty(fd) != like_mac && isatty(fd) == 1 && tcgetpgrp(fd) >= 0));
        CHECK(fd < 0 || fcntl(fd, F_GETFD) == FD_CLOEXEC);
        _exit(0);
    }
    int status = 1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {}
    CHECK(status == 0);
}

int main(void) {
    find_in(true, false);
    find_in(true, true);
    find_in(false, false); /* a terminal that is not ours is not taken */
    find_in(false, true);
    return 0;
}
