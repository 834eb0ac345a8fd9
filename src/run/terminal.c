#include "run/terminal.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/status.h"
#include "run/descriptor.h"

static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGSYS};
enum { fault_count = sizeof faults / sizeof faults[0] };

/* What a fault's handler restores, and what was there before it. */
static bp_run_terminal *volatile raw_terminal;
static struct sigaction before_fault[fault_count];

bool bp_run_terminal_init(bp_run_terminal *terminal, int fd) {
    *terminal = (bp_run_terminal){.fd = -1};
    if (fd < 0 || tcgetattr(fd, &terminal->before) != 0) {
        return false;
    }
    terminal->fd = fd;
    return true;
}

bool bp_run_terminal_is_ours(const bp_run_terminal *terminal) {
    if (terminal->fd < 0) {
        return false;
    }
    /* A terminal that is not our session's has no group, and nobody to stop us. */
    pid_t group = tcgetpgrp(terminal->fd);
    return group < 0 || group == getpgrp();
}

static void restore_at_fault(int number) {
    bp_run_terminal *terminal = raw_terminal;
    if (terminal != NULL) {
        (void)tcsetattr(terminal->fd, TCSANOW, &terminal->before);
    }
    (void)raise(number); /* its default action is back (SA_RESETHAND) */
}

bool bp_run_terminal_has_hung_up(const bp_run_terminal *terminal) {
    struct pollfd fd = {terminal->fd, POLLIN, 0};
    return terminal->fd >= 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP) != 0;
}

bool bp_run_can_be_polled(int fd) {
    struct pollfd now = {.fd = fd, .events = POLLIN};
    return poll(&now, 1, 0) >= 0 && (now.revents & POLLNVAL) == 0;
}

/* Only of its own session a terminal has a foreground group to tell (tcgetpgrp(3)). */
static bool is_of_use(int fd) {
    return tcgetpgrp(fd) >= 0 && bp_run_can_be_polled(fd);
}

int bp_run_open_controlling(void) {
    /* ttyname's buffer is shared: this program has one thread by now. */
    for (int other = STDIN_FILENO; other <= STDERR_FILENO; other++) {
        const char *name = other == STDIN_FILENO ? "/dev/tty" : ttyname(other);
        int fd = name != NULL ? open(name, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
        if (fd >= 0 && is_of_use(fd)) {
            return fd;
        }
        bp_descriptor_close(&fd);
    }
    return -1;
}

static bool is_raw(const struct termios *settings) {
    return (settings->c_lflag & (tcflag_t)(ICANON | ECHO | ISIG | IEXTEN)) == 0 &&
           (settings->c_oflag & (tcflag_t)OPOST) == 0;
}

static void catch_faults(bp_run_terminal *terminal) {
    raw_terminal = terminal;
    struct sigaction action;
    memset(&action, 0, sizeof action);
    action.sa_handler = restore_at_fault;
    action.sa_flags = (int)SA_RESETHAND;
    (void)sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < fault_count; i++) {
        (void)sigaction(faults[i], &action, &before_fault[i]);
    }
}

void bp_run_terminal_make_raw(bp_run_terminal *terminal) {
    struct termios now;
    if (terminal->fd < 0 || tcgetattr(terminal->fd, &now) != 0 ||
        (terminal->is_raw && is_raw(&now))) {
        return;
    }
    terminal->before = now;
    if (raw_terminal == NULL) {
        catch_faults(terminal);
    }
    cfmakeraw(&now);
    terminal->is_raw = tcsetattr(terminal->fd, TCSADRAIN, &now) == 0;
}

void bp_run_terminal_restore(bp_run_terminal *terminal) {
    if (raw_terminal != terminal || terminal->fd < 0) {
        return;
    }
    (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->before);
    raw_terminal = NULL;
    terminal->is_raw = false;
    for (size_t i = 0; i < fault_count; i++) {
        (void)sigaction(faults[i], &before_fault[i], NULL);
    }
}

void bp_run_pty_copy_size(int size_of, int master) {
    struct winsize size;
    if (ioctl(size_of, TIOCGWINSZ, &size) == 0) {
        (void)ioctl(master, TIOCSWINSZ, &size);
    }
}

bugpack_status bp_run_pty_open(const struct termios *like, int size_of, int *ret_master,
                               int *ret_slave, bugpack_error *error) {
    int slave = -1;
    int master = posix_openpt(O_RDWR | O_NOCTTY);
    const char *name = NULL;
    if (master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0) {
        name = ptsname(master); /* its buffer is shared: this program has one thread by now */
    }
    if (name != NULL) {
        slave = open(name, O_RDWR | O_NOCTTY);
    }
    struct termios settings;
    if (slave < 0 || tcgetattr(slave, &settings) != 0) {
        int open_errno = errno;
        bp_descriptor_close(&master);
        bp_descriptor_close(&slave);
        return bp_fail_errno(error, open_errno, "cannot open a pseudo-terminal");
    }
    if (like != NULL) {
        settings = *like;
    } else {
        cfmakeraw(&settings);
    }
    (void)tcsetattr(slave, TCSANOW, &settings);
    bp_run_pty_copy_size(size_of, master);
    bp_descriptor_keep_from_exec(master);
    bp_descriptor_keep_from_exec(slave);
    *ret_master = master;
    *ret_slave = slave;
    return BUGPACK_OK;
}
