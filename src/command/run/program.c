#include "run/program.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/child_end.h"
#include "run/descriptor.h"

extern char **environ;

static const uint64_t killed_ns = 2 * BP_NS_PER_SEC;

struct running {
    const bp_run_program *program;
    bp_run_program_end end;
};

/* A bp_sink of what it prints. */
static bugpack_status take_output(void *context, const void *bytes, size_t byte_count) {
    struct running *running = context;
    running->end.has_printed = true;
    return running->program->sink(running->program->context, bytes, byte_count);
}

/* A bp_sink of what it says. The beginning is kept, as one line. */
static bugpack_status take_said(void *context, const void *bytes, size_t byte_count) {
    bp_run_program_end *end = context;
    const char *piece = bytes;
    for (size_t i = 0; i < byte_count && end->said_bytes < sizeof end->said - 1; i++) {
        end->said[end->said_bytes++] = piece[i] == '\n' || piece[i] == '\0' ? ' ' : piece[i];
    }
    return BUGPACK_OK;
}

static bugpack_status read_output(struct running *running, bp_child *child, int out_fd, int said_fd,
                                  bugpack_error *error) {
    const char *name = running->program->arguments[0];
    const bp_child_output outputs[] = {{out_fd, take_output, running},
                                       {said_fd, take_said, &running->end}};
    bugpack_status status = bp_child_read(child, outputs, &running->program->limits);
    int failure = errno;
    if (child->pid != 0) { /* its group is no other's while it is not reaped */
        siginfo_t info;
        /* It may have ended, and a process that it started have its output. */
        running->end.was_killed = !bp_child_look(child->pid, &info);
        /* A program that waits in the kernel for a disk or a server is left. */
        child->wait_status = SIGKILL;
        (void)bp_child_kill(child, SIGKILL, killed_ns);
    }
    running->end.wait_status = child->wait_status;
    switch (status) {
    case BUGPACK_OK:
        return status;
    case BUGPACK_ERR_CANCELLED:
        return bp_fail(error, status, "the report was cancelled");
    case BUGPACK_ERR_TIMEOUT:
        return bp_fail(error, status, "%s was not done in time", name);
    case BUGPACK_ERR_IO:
        return bp_fail_errno(error, failure, "cannot wait for %s", name);
    default:
        return bp_fail(error, status, "what %s printed was not kept: %s", name,
                       bugpack_status_name(status));
    }
}

bugpack_status bp_run_program_judge(const bp_run_program *program, const bp_run_program_end *end,
                                    bugpack_error *error) {
    const char *name = program->arguments[0];
    int wait_status = end->wait_status; /* Apple's macros take its address */
    if (WIFSIGNALED(wait_status)) {
        return bp_fail(error, BUGPACK_ERR_IO, "%s was ended by signal %d", name,
                       WTERMSIG(wait_status));
    }
    if (!WIFEXITED(wait_status) || WEXITSTATUS(wait_status) != 0) {
        return bp_fail(error, BUGPACK_ERR_IO, "%s failed%s%s", name,
                       end->said[0] != '\0' ? ": " : "", end->said);
    }
    return end->has_printed ? BUGPACK_OK
                            : bp_fail(error, BUGPACK_ERR_IO, "%s printed nothing", name);
}

bugpack_status bp_run_program_run(const bp_run_program *program, bp_run_program_end *ret_end,
                                  bugpack_error *error) {
    struct running running = {.program = program};
    bp_run_program_end *end = &running.end;
    bp_child child = {.pid = 0};
    int out[2] = {-1, -1}, said[2] = {-1, -1};
    bugpack_status status = bp_descriptor_pipe(out, error);
    if (status == BUGPACK_OK) {
        status = bp_descriptor_pipe(said, error);
    }
    if (status == BUGPACK_OK) {
        const bp_child_plan plan = {
            .arguments = program->arguments,
            .environment = environ,
            .fds = {BP_CHILD_NULL, out[1], program->joins_error ? out[1] : said[1], BP_CHILD_OURS},
            .leads_group = true,
        };
        int failure = bp_child_start(&plan, &child);
        if (failure == ENOENT) {
            status = bp_fail(error, BUGPACK_ERR_IO, "%s is not installed, or not in PATH",
                             program->arguments[0]);
        } else if (failure != 0) {
            status = bp_fail_errno(error, failure, "cannot run '%s'", program->arguments[0]);
        }
    }
    bp_descriptor_close(&out[1]);
    bp_descriptor_close(&said[1]);
    if (status == BUGPACK_OK) {
        status = read_output(&running, &child, out[0], said[0], error);
    }
    bp_descriptor_close(&out[0]);
    bp_descriptor_close(&said[0]);
    /* Without the spaces that newlines at the end have become. */
    while (end->said_bytes > 0 && end->said[end->said_bytes - 1] == ' ') {
        end->said[--end->said_bytes] = '\0';
    }
    *ret_end = *end;
    return status;
}
