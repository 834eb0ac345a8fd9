#include "run/controlling.h"

#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <unistd.h>

#include "run/descriptor.h"

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
