#include "run/descriptor.h"

#include <errno.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/status.h"

bool bp_descriptor_keep_from_exec(int fd) {
    return ioctl(fd, FIOCLEX) == 0;
}

bool bp_descriptor_stop_blocking(int fd) {
    return ioctl(fd, FIONBIO, &(int){1}) == 0;
}

/* Not pipe2, which not every Unix has: this program makes these before its first thread, so no fork
 * can come in between. */
bugpack_status bp_descriptor_pipe(int ret_fds[2], bugpack_error *error) {
    int result = pipe(ret_fds);
    if (result == 0 && bp_descriptor_keep_from_exec(ret_fds[0]) &&
        bp_descriptor_keep_from_exec(ret_fds[1])) {
        return BUGPACK_OK;
    }
    bugpack_status status = bp_fail_errno(error, errno, "cannot make a pipe");
    if (result == 0) {
        bp_descriptor_close(&ret_fds[0]);
        bp_descriptor_close(&ret_fds[1]);
    }
    return status;
}

void bp_descriptor_close(int *fd) {
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

bool bp_descriptor_read_all(int fd, void *bytes, size_t byte_count) {
    ssize_t count;
    do {
        count = read(fd, bytes, byte_count);
    } while (count < 0 && errno == EINTR);
    return count == (ssize_t)byte_count;
}
