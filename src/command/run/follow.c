#include "run/follow.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "run/descriptor.h"

extern char **environ;

struct bp_follow {
    char *path; /* NULL: it is a program */
    bp_child program;
    int fd; /* -1: the file is not there yet */
    uint64_t offset;
    dev_t device;
    ino_t inode;
    bp_line_splitter splitter;
};

/* The most that one look reads, so that a file that grows faster does not keep others waiting. */
enum { piece_bytes = 64 * 1024, piece_max_count = 64 };

static bugpack_status new_follow(bp_line_taker *take, void *context, bp_follow **ret_follow,
                                 bugpack_error *error) {
    bp_follow *follow = calloc(1, sizeof *follow);
    if (follow == NULL) {
        return bp_fail_memory(error, "follow a log");
    }
    follow->fd = -1;
    bp_line_splitter_init(&follow->splitter, take, context);
    *ret_follow = follow;
    return BUGPACK_OK;
}

/* --- a file ----------------------------------------------------------------------------------- */

static bugpack_status open_file(bp_follow *follow, bool at_end, bugpack_error *error) {
    struct stat info;
    int fd = -1;
    bugpack_status status = bp_file_open_regular(AT_FDCWD, follow->path, &fd, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (fstat(fd, &info) != 0) {
        status = bp_fail_errno(error, errno, "cannot read \"%s\"", follow->path);
        bp_file_close(fd);
        return status;
    }
    bp_file_close(follow->fd);
    follow->fd = fd;
    follow->device = info.st_dev;
    follow->inode = info.st_ino;
    follow->offset = at_end ? (uint64_t)info.st_size : 0;
    return BUGPACK_OK;
}

bugpack_status bp_follow_file(const char *path, bp_line_taker *take, void *context,
                              bp_follow **ret_follow, bugpack_error *error) {
    bp_follow *follow = NULL;
    bugpack_error reason = BUGPACK_ERROR_INIT;
    bugpack_status status = new_follow(take, context, &follow, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    follow->path = strdup(path);
    status = follow->path == NULL ? bp_fail_memory(error, "follow a log") : BUGPACK_OK;
    if (status == BUGPACK_OK && open_file(follow, true, &reason) != BUGPACK_OK &&
        reason.system_errno != ENOENT) {
        status = reason.status;
        *error = reason;
    }
    if (status != BUGPACK_OK) {
        bp_follow_close(follow);
        return status;
    }
    *ret_follow = follow;
    return BUGPACK_OK;
}

static void read_file(bp_follow *follow) {
    char piece[piece_bytes];
    struct stat info;
    if (follow->fd >= 0 && fstat(follow->fd, &info) == 0 &&
        (uint64_t)info.st_size < follow->offset) {
        bp_line_splitter_flush(&follow->splitter);
        follow->offset = 0;
    }
    for (int i = 0; follow->fd >= 0 && i < piece_max_count; i++) {
        int64_t count = bp_file_read_range(follow->fd, piece, sizeof piece, follow->offset);
        if (count <= 0) {
            return;
        }
        bp_line_splitter_feed(&follow->splitter, piece, (size_t)count);
        follow->offset += (uint64_t)count;
    }
}

/* The file that had the name before is read to its end first. */
static void look_at_file(bp_follow *follow) {
    struct stat info;
    read_file(follow);
    bool is_same =
        stat(follow->path, &info) != 0 ||
        (follow->fd >= 0 && info.st_dev == follow->device && info.st_ino == follow->inode);
    if (!is_same && open_file(follow, false, NULL) == BUGPACK_OK) {
        bp_line_splitter_flush(&follow->splitter);
        read_file(follow);
    }
}

/* --- a program -------------------------------------------------------------------------------- */

bugpack_status bp_follow_program(const char *const *arguments, bp_line_taker *take, void *context,
                                 bp_follow **ret_follow, bugpack_error *error) {
    int fds[2] = {-1, -1};
    bp_follow *follow = NULL;
    bugpack_status status = new_follow(take, context, &follow, error);
    if (status == BUGPACK_OK) {
        status = bp_descriptor_pipe(fds, error);
    }
    if (status == BUGPACK_OK) {
        follow->fd = fds[0];
        const bp_child_plan plan = {
            .arguments = arguments,
            .environment = environ,
            .fds = {BP_CHILD_NULL, fds[1], BP_CHILD_OURS, BP_CHILD_OURS},
        };
        int result = bp_descriptor_stop_blocking(follow->fd)
                         ? bp_child_start(&plan, &follow->program)
                         : errno;
        status = result == 0 ? BUGPACK_OK
                             : bp_fail_errno(error, result, "cannot start %s", arguments[0]);
    }
    bp_descriptor_close(&fds[1]);
    if (status != BUGPACK_OK) {
        bp_follow_close(follow);
        return status;
    }
    *ret_follow = follow;
    return BUGPACK_OK;
}

static bool look_at_program(bp_follow *follow) {
    char piece[piece_bytes];
    for (int i = 0; i < piece_max_count; i++) {
        ssize_t count = read(follow->fd, piece, sizeof piece);
        if (count <= 0) {
            return count < 0 && (errno == EAGAIN || errno == EINTR);
        }
        bp_line_splitter_feed(&follow->splitter, piece, (size_t)count);
    }
    return true;
}

/* --- both ------------------------------------------------------------------------------------- */

int bp_follow_fd(const bp_follow *follow) {
    return follow->path == NULL ? follow->fd : -1;
}

bool bp_follow_look(bp_follow *follow) {
    if (follow->path == NULL) {
        return look_at_program(follow);
    }
    look_at_file(follow);
    return true;
}

void bp_follow_close(bp_follow *follow) {
    if (follow == NULL) {
        return;
    }
    (void)bp_child_kill(&follow->program, SIGKILL, BP_NS_PER_SEC); /* it only reads */
    bp_file_close(follow->fd);
    free(follow->path);
    free(follow);
}
