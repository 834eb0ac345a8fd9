#include "run/pipes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/status.h"
#include "run/descriptor.h"

/* The keyboard: standard input, or else the controlling terminal, as a pager finds it. */
static void find_keyboard(bp_run_pipes *pipes) {
    int fd = STDIN_FILENO;
    if (isatty(STDIN_FILENO) != 1) {
        fd = open("/dev/tty", O_RDWR | O_NOCTTY | O_CLOEXEC);
        pipes->owns_keyboard = fd >= 0;
    }
    if (!bp_run_terminal_init(&pipes->terminal, fd) && pipes->owns_keyboard) {
        bp_descriptor_close(&fd);
        pipes->owns_keyboard = false;
    }
}

static bugpack_status add_output(bp_run_pipes *pipes, bp_run_stream stream, int from_fd, int to_fd,
                                 bugpack_error *error) {
    pipes->outputs[pipes->output_count++] = (bp_run_output){stream, from_fd, to_fd};
    return bp_descriptor_stop_blocking(from_fd)
               ? BUGPACK_OK
               : bp_fail_errno(error, errno, "cannot read what the command writes");
}

/* True if standard output and standard error are one file, pipe or terminal. A device such as
 * /dev/null has no order to keep; its lines are better told apart in the log. */
static bool is_one_file(void) {
    struct stat out, err;
    return fstat(STDOUT_FILENO, &out) == 0 && fstat(STDERR_FILENO, &err) == 0 &&
           out.st_dev == err.st_dev && out.st_ino == err.st_ino &&
           (!S_ISCHR(out.st_mode) || isatty(STDOUT_FILENO) == 1);
}

/* Standard output or standard error as a pipe, or as a terminal that only carries output. */
static bugpack_status open_output(bp_run_pipes *pipes, int fd, bugpack_error *error) {
    int ends[2] = {-1, -1};
    bugpack_status status = isatty(fd) == 1 ? bp_run_pty_open(NULL, fd, &ends[0], &ends[1], error)
                                            : bp_descriptor_pipe(ends, error);
    if (status == BUGPACK_OK) {
        pipes->standard[fd] = ends[1];
        status = add_output(pipes, fd == STDOUT_FILENO ? BP_RUN_STDOUT : BP_RUN_STDERR, ends[0], fd,
                            error);
    }
    return status;
}

static bugpack_status open_controlled(bp_run_pipes *pipes, bugpack_error *error) {
    int master = -1;
    bugpack_status status =
        bp_run_pty_open(&pipes->terminal.before, pipes->terminal.fd, &master, &pipes->slave, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    (void)tcgetattr(master, &pipes->terminal.lent);
    pipes->standard[STDOUT_FILENO] = pipes->slave;
    if (isatty(STDIN_FILENO) == 1) {
        pipes->standard[STDIN_FILENO] = pipes->slave;
    }
    status = add_output(pipes, BP_RUN_TERMINAL, master, STDOUT_FILENO, error);
    pipes->keyboard_to_fd = master;
    if (isatty(STDERR_FILENO) == 1) {
        pipes->standard[STDERR_FILENO] = pipes->slave;
    } else if (status == BUGPACK_OK) {
        status = open_output(pipes, STDERR_FILENO, error);
    }
    return status;
}

bugpack_status bp_run_pipes_open(bp_run_pipes *pipes, bugpack_error *error) {
    *pipes = (bp_run_pipes){.terminal = {.fd = -1},
                            .keyboard_to_fd = -1,
                            .go_fd = -1,
                            .failure_fd = -1,
                            .standard = {-1, -1, -1},
                            .slave = -1,
                            .go_from_fd = -1,
                            .failure_to_fd = -1};
    int go[2] = {-1, -1};
    int failure[2] = {-1, -1};
    bugpack_status status = bp_descriptor_pipe(go, error);
    pipes->go_from_fd = go[0];
    pipes->go_fd = go[1];
    if (status == BUGPACK_OK) {
        status = bp_descriptor_pipe(failure, error);
        pipes->failure_fd = failure[0];
        pipes->failure_to_fd = failure[1];
    }
    if (status == BUGPACK_OK && isatty(STDOUT_FILENO) == 1) {
        find_keyboard(pipes);
    }
    if (status == BUGPACK_OK && pipes->terminal.fd >= 0) {
        return open_controlled(pipes, error);
    }
    if (status == BUGPACK_OK) {
        status = open_output(pipes, STDOUT_FILENO, error);
    }
    if (status != BUGPACK_OK || !is_one_file()) {
        return status == BUGPACK_OK ? open_output(pipes, STDERR_FILENO, error) : status;
    }
    pipes->outputs[0].stream = BP_RUN_OUTPUT;
    int both = dup(pipes->standard[STDOUT_FILENO]);
    pipes->standard[STDERR_FILENO] = both;
    return both >= 0 && bp_descriptor_keep_from_exec(both)
               ? BUGPACK_OK
               : bp_fail_errno(error, errno, "cannot make a pipe for the command");
}

void bp_run_pipes_close_ours(bp_run_pipes *pipes) {
    bp_descriptor_close(&pipes->go_fd);
    bp_descriptor_close(&pipes->failure_fd);
    for (size_t i = 0; i < pipes->output_count; i++) {
        bp_descriptor_close(&pipes->outputs[i].from_fd);
    }
    pipes->keyboard_to_fd = -1;
}

void bp_run_pipes_close_theirs(bp_run_pipes *pipes) {
    for (size_t i = 0; i < 3; i++) {
        if (pipes->standard[i] != pipes->slave) {
            bp_descriptor_close(&pipes->standard[i]);
        }
        pipes->standard[i] = -1;
    }
    bp_descriptor_close(&pipes->slave);
    bp_descriptor_close(&pipes->go_from_fd);
    bp_descriptor_close(&pipes->failure_to_fd);
}
