#include "run/plumbing.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/thread.h"
#include "run/controlling.h"
#include "run/descriptor.h"

/* What a shell says of a command that it cannot execute. */
enum { exit_cannot_execute = 126 };

/* The keyboard: standard input, or the terminal that standard input is not, as a pager finds it. */
static void find_keyboard(bp_run_child *child) {
    int fd = STDIN_FILENO;
    if (isatty(STDIN_FILENO) != 1 || !bp_run_can_be_polled(fd)) {
        fd = bp_run_open_controlling();
        child->owns_keyboard = fd >= 0;
    }
    if (!bp_run_terminal_init(&child->terminal, fd) && child->owns_keyboard) {
        bp_descriptor_close(&fd);
        child->owns_keyboard = false;
    }
}

static void add_output(bp_run_child *child, bp_run_stream stream, int from_fd, int to_fd) {
    bp_descriptor_stop_blocking(from_fd);
    child->outputs[child->output_count++] = (bp_run_output){stream, from_fd, to_fd};
}

/* Standard output or standard error as a pipe, or as a terminal that only carries output. */
static bugpack_status open_output(bp_run_plumbing *plumbing, bp_run_child *child, int fd,
                                  bugpack_error *error) {
    int ends[2] = {-1, -1};
    bugpack_status status = isatty(fd) == 1 ? bp_run_pty_open(NULL, fd, &ends[0], &ends[1], error)
                                            : bp_descriptor_pipe(ends, error);
    if (status == BUGPACK_OK) {
        plumbing->standard[fd] = ends[1];
        add_output(child, fd == STDOUT_FILENO ? BP_RUN_STDOUT : BP_RUN_STDERR, ends[0], fd);
    }
    return status;
}

static bugpack_status open_controlled(bp_run_plumbing *plumbing, bp_run_child *child,
                                      bugpack_error *error) {
    int master = -1;
    bugpack_status status = bp_run_pty_open(&child->terminal.before, child->terminal.fd, &master,
                                            &plumbing->slave, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    plumbing->is_controlled = true;
    plumbing->outside = child->terminal;
    plumbing->standard[STDOUT_FILENO] = plumbing->slave;
    if (isatty(STDIN_FILENO) == 1) {
        plumbing->standard[STDIN_FILENO] = plumbing->slave;
    }
    add_output(child, BP_RUN_TERMINAL, master, STDOUT_FILENO);
    child->keyboard_to_fd = master;
    if (isatty(STDERR_FILENO) == 1) {
        plumbing->standard[STDERR_FILENO] = plumbing->slave;
        return BUGPACK_OK;
    }
    return open_output(plumbing, child, STDERR_FILENO, error);
}

static bugpack_status open_word_pipes(bp_run_plumbing *plumbing, bp_run_child *child,
                                      bugpack_error *error) {
    int go[2] = {-1, -1};
    int failure[2] = {-1, -1};
    bugpack_status status = bp_descriptor_pipe(go, error);
    if (status == BUGPACK_OK) {
        plumbing->go_fd = go[0];
        child->go_fd = go[1];
        status = bp_descriptor_pipe(failure, error);
    }
    if (status == BUGPACK_OK) {
        child->failure_fd = failure[0];
        plumbing->failure_fd = failure[1];
    }
    return status;
}

static void note_ours(bp_run_plumbing *plumbing, const bp_run_child *child) {
    size_t count = 0;
    plumbing->ours[count++] = child->go_fd;
    plumbing->ours[count++] = child->failure_fd;
    for (size_t i = 0; i < child->output_count; i++) {
        plumbing->ours[count++] = child->outputs[i].from_fd;
    }
}

bugpack_status bp_run_plumbing_open(bp_run_plumbing *plumbing, bp_run_child *child,
                                    bugpack_error *error) {
    bugpack_status status = open_word_pipes(plumbing, child, error);
    if (status == BUGPACK_OK && isatty(STDOUT_FILENO) == 1) {
        find_keyboard(child);
    }
    if (status == BUGPACK_OK && child->terminal.fd >= 0) {
        status = open_controlled(plumbing, child, error);
    } else if (status == BUGPACK_OK) {
        status = open_output(plumbing, child, STDOUT_FILENO, error);
        if (status == BUGPACK_OK) {
            status = open_output(plumbing, child, STDERR_FILENO, error);
        }
    }
    note_ours(plumbing, child);
    return status;
}

void bp_run_plumbing_close_ours(const bp_run_plumbing *plumbing) {
    for (size_t i = 0; i < sizeof plumbing->ours / sizeof plumbing->ours[0]; i++) {
        int fd = plumbing->ours[i];
        bp_descriptor_close(&fd);
    }
}

void bp_run_plumbing_close_theirs(bp_run_plumbing *plumbing) {
    for (size_t i = 0; i < 3; i++) {
        int fd = plumbing->standard[i];
        if (fd != plumbing->slave) {
            bp_descriptor_close(&fd);
        }
        plumbing->standard[i] = -1;
    }
    bp_descriptor_close(&plumbing->slave);
    bp_descriptor_close(&plumbing->go_fd);
    bp_descriptor_close(&plumbing->failure_fd);
}

/* The name that execve will give it anyway: whoever looks before that sees it too. */
static void take_name(const char *command) {
    const char *slash = strrchr(command, '/');
    char name[16];
    size_t length = strnlen(slash != NULL ? slash + 1 : command, sizeof name - 1);
    memcpy(name, slash != NULL ? slash + 1 : command, length);
    name[length] = '\0';
    bp_thread_set_name(name);
}

_Noreturn void bp_run_plumbing_execute(const bp_run_plumbing *plumbing) {
    char word;
    int failure = 0;
    take_name(plumbing->arguments[0]);
    (void)bp_descriptor_write_all(plumbing->failure_fd, &failure, sizeof failure);
    if (!bp_descriptor_read_all(plumbing->go_fd, &word, 1)) {
        _exit(0);
    }
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (plumbing->standard[fd] >= 0) {
            (void)dup2(plumbing->standard[fd], fd); /* the copy is not close-on-exec */
        }
    }
    (void)signal(SIGPIPE, plumbing->ignores_pipe ? SIG_IGN : SIG_DFL);
    (void)execvp(plumbing->arguments[0], plumbing->arguments);
    failure = errno;
    (void)bp_descriptor_write_all(plumbing->failure_fd, &failure, sizeof failure);
    _exit(exit_cannot_execute);
}
