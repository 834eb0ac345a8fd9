#include "platform/wake.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"

enum { standard_stream_count = 3 };

bugpack_status bp_wake_open(bp_wake *ret_wake, bugpack_error *error) {
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0 && fd < standard_stream_count) {
        int above = fcntl(fd, F_DUPFD_CLOEXEC, standard_stream_count);
        bp_file_close(fd);
        fd = above;
    }
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot make a descriptor for events");
    }
    *ret_wake = (bp_wake){.fd = fd, .raise_fd = fd};
    return BUGPACK_OK;
}

void bp_wake_close(bp_wake *wake) {
    (void)close(wake->fd);
}

void bp_wake_raise(const bp_wake *wake) {
    (void)eventfd_write(wake->raise_fd, 1);
}

void bp_wake_lower(const bp_wake *wake) {
    eventfd_t count;
    (void)eventfd_read(wake->fd, &count);
}
