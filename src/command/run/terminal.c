#include "run/terminal.h"

#include <errno.h>
#include <poll.h>
#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/status.h"
#include "run/descriptor.h"

bool bp_run_terminal_init(bp_run_terminal *terminal, int fd) {
    *terminal = (bp_run_terminal){.fd = -1};
    if (fd < 0 || tcgetattr(fd, &terminal->before) != 0) {
        return false;
    }
    terminal->fd = fd;
    return true;
}

bool bp_run_terminal_has_hung_up(const bp_run_terminal *terminal) {
    struct pollfd fd = {terminal->fd, POLLIN, 0};
    return terminal->fd >= 0 && poll(&fd, 1, 0) == 1 && (fd.revents & POLLHUP) != 0;
}

static bool is_raw(const struct termios *settings) {
    return (settings->c_lflag & (tcflag_t)(ICANON | ECHO | ISIG | IEXTEN)) == 0 &&
           (settings->c_oflag & (tcflag_t)OPOST) == 0;
}

static void make_raw(bp_run_terminal *terminal) {
    struct termios now;
    if (tcgetattr(terminal->fd, &now) != 0 || (terminal->is_raw && is_raw(&now))) {
        return;
    }
    terminal->before = now;
    cfmakeraw(&now);
    terminal->is_raw = tcsetattr(terminal->fd, TCSADRAIN, &now) == 0;
}

static bool is_same(const struct termios *one, const struct termios *other) {
    return one->c_iflag == other->c_iflag && one->c_oflag == other->c_oflag &&
           one->c_cflag == other->c_cflag && one->c_lflag == other->c_lflag &&
           memcmp(one->c_cc, other->c_cc, sizeof one->c_cc) == 0;
}

/* When the command was started, a shell may have had the terminal, with the settings of its own
 * prompt. The command gets those of a command, unless it has chosen others. */
static void pass_settings(const bp_run_terminal *terminal, int master) {
    struct termios now;
    if (is_same(&terminal->before, &terminal->lent)) {
        return; /* and the command may be about to choose its own */
    }
    if (tcgetattr(master, &now) == 0 && is_same(&now, &terminal->lent)) {
        (void)tcsetattr(master, TCSANOW, &terminal->before);
    }
}

bool bp_run_terminal_take(bp_run_terminal *terminal, int master) {
    /* Only a terminal of our session has a foreground group, and can stop us (tcgetpgrp(3)). */
    pid_t group = terminal->fd < 0 ? 0 : tcgetpgrp(terminal->fd);
    if (terminal->fd < 0 || (group >= 0 && group != getpgrp())) {
        return false;
    }
    make_raw(terminal);
    if (!terminal->was_taken) {
        pass_settings(terminal, master);
        terminal->was_taken = true;
    }
    bp_run_pty_copy_size(terminal->fd, master);
    return true;
}

void bp_run_terminal_restore(bp_run_terminal *terminal) {
    if (terminal->is_raw) {
        (void)tcsetattr(terminal->fd, TCSADRAIN, &terminal->before);
        terminal->is_raw = false;
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
    int master = -1, slave = -1;
    struct termios settings;
    if (openpty(&master, &slave, NULL, like, NULL) != 0 || !bp_descriptor_keep_from_exec(master) ||
        !bp_descriptor_keep_from_exec(slave)) {
        int open_errno = errno;
        bp_descriptor_close(&master);
        bp_descriptor_close(&slave);
        return bp_fail_errno(error, open_errno, "cannot open a pseudo-terminal");
    }
    if (like == NULL && tcgetattr(slave, &settings) == 0) {
        cfmakeraw(&settings);
        (void)tcsetattr(slave, TCSANOW, &settings);
    }
    bp_run_pty_copy_size(size_of, master);
    *ret_master = master;
    *ret_slave = slave;
    return BUGPACK_OK;
}
