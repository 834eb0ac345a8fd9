#include "cli/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "cli/interrupt.h"
#include "cli/tail.h"
#include "cli/words.h"
#include "run/program.h"

static bool is_cancelled(const void *nothing) {
    (void)nothing;
    return bp_cli_interrupt_came();
}

static int provide_stream(const bp_cli_stream *stream, const bp_child_limits *limits,
                          bp_cli_tail *newest, bugpack_writer *writer) {
    /* Not blocked by a FIFO that nobody writes to. */
    int fd = strcmp(stream->source, "-") == 0
                 ? dup(STDIN_FILENO)
                 : open(stream->source,
                        O_RDONLY | O_NONBLOCK | O_CLOEXEC | (stream->is_found ? O_NOFOLLOW : 0));
    if (fd < 0) {
        return bugpack_fail(writer, "cannot open \"%s\": %s", stream->source, strerror(errno));
    }
    /* A FIFO without a writer is not at its end as long as nobody has written. */
    const bp_child_output outputs[] = {{fd, bp_cli_tail_keep, newest}, {.fd = -1}};
    bugpack_status status = bp_child_read(NULL, outputs, limits);
    int failure = errno;
    bp_file_close(fd);
    if (status == BUGPACK_ERR_LIMIT) {
        return bugpack_fail(writer, "\"%s\" is over the limit of %llu bytes", stream->source,
                            (unsigned long long)stream->limit_bytes);
    }
    if (status != BUGPACK_OK && status != BUGPACK_ERR_TIMEOUT) {
        return bugpack_fail(writer, "cannot read \"%s\": %s", stream->source,
                            status == BUGPACK_ERR_IO ? strerror(failure)
                                                     : bugpack_status_name(status));
    }
    if (status == BUGPACK_ERR_TIMEOUT && newest->total_bytes == 0) {
        return bugpack_fail(writer, "nothing came from \"%s\" within %.1f s", stream->source,
                            stream->timeout_ms / 1000.0);
    }
    bp_cli_tail_write(newest, writer);
    if (status == BUGPACK_ERR_TIMEOUT) {
        bugpack_truncate(writer, false, "%llu bytes came within %.1f s, and it had not ended",
                         (unsigned long long)newest->total_bytes, stream->timeout_ms / 1000.0);
    }
    return 0;
}

static int provide_journal(const bp_cli_stream *stream, const bp_child_limits *limits,
                           bp_cli_tail *newest, bugpack_writer *writer) {
    /* A line begins with 32 bytes of time: the size is the limit that counts. */
    char lines[40];
    (void)snprintf(lines, sizeof lines, "--lines=%llu",
                   (unsigned long long)(stream->limit_bytes / 32 + 1));
    const char *const arguments[] = {"journalctl", "--no-pager", "--output=short-iso-precise",
                                     lines,        "--unit",     stream->source,
                                     NULL};
    const bp_run_program program = {
        .arguments = arguments, .sink = bp_cli_tail_keep, .context = newest, .limits = *limits};
    bp_run_program_end end;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_run_program_run(&program, &end, &error);
    if (status == BUGPACK_OK) {
        status = bp_run_program_judge(&program, &end, &error);
    }
    if (status != BUGPACK_OK) {
        return bugpack_fail(writer, "%s", error.message);
    }
    bp_cli_tail_write(newest, writer);
    if (end.said[0] != '\0') { /* such as that the journals of others cannot be read */
        bugpack_truncate(writer, true, "journalctl: %s", end.said);
    }
    return 0;
}

static void write_end(const bp_cli_stream *stream, bugpack_status status,
                      const bp_run_program_end *end, uint64_t began_ns, bugpack_writer *writer) {
    double secs = (double)(bp_clock_monotonic_ns() - began_ns) / BP_NS_PER_SEC;
    int wait_status = end->wait_status;
    char after[40] = "";
    if (end->was_killed) {
        (void)bugpack_printf(writer, "\n[killed after %.3f s]\n", secs);
        bugpack_truncate(writer, true, "it did not end within %.1f s, and was killed",
                         stream->timeout_ms / 1000.0);
        return;
    }
    if (status == BUGPACK_ERR_TIMEOUT) {
        bugpack_truncate(writer, true,
                         "it ended, and a process that it left behind did not close its output "
                         "within %.1f s",
                         stream->timeout_ms / 1000.0);
    } else {
        (void)snprintf(after, sizeof after, " after %.3f s", secs);
    }
    if (WIFSIGNALED(wait_status)) {
        const char *name = strsignal(WTERMSIG(wait_status));
        (void)bugpack_printf(writer, "\n[ended by signal %d (%s)%s]\n", WTERMSIG(wait_status),
                             name != NULL ? name : "unknown", after);
    } else {
        (void)bugpack_printf(writer, "\n[exit status %d%s]\n", WEXITSTATUS(wait_status), after);
    }
}

static int provide_command(const bp_cli_stream *stream, const bp_child_limits *limits,
                           bp_cli_tail *newest, bugpack_writer *writer) {
    const char *const shell[] = {"/bin/sh", "-c", stream->source, NULL};
    const char *reason = "";
    char **words =
        stream->kind == BP_CLI_STREAM_SHELL ? NULL : bp_cli_words(stream->source, &reason);
    if (words == NULL && stream->kind != BP_CLI_STREAM_SHELL) {
        return bugpack_fail(writer, "%s", reason);
    }
    const bp_run_program program = {.arguments = words != NULL ? (const char *const *)words : shell,
                                    .sink = bp_cli_tail_keep,
                                    .context = newest,
                                    .joins_error = true,
                                    .limits = *limits};
    bp_run_program_end end = {.wait_status = 0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    uint64_t began_ns = bp_clock_monotonic_ns();
    bugpack_status status = bp_run_program_run(&program, &end, &error);
    free(words);
    if (status != BUGPACK_OK && status != BUGPACK_ERR_TIMEOUT) {
        return bugpack_fail(writer, "%s", error.message);
    }
    (void)bugpack_printf(writer, "$ %s\n", stream->source);
    bp_cli_tail_write(newest, writer);
    write_end(stream, status, &end, began_ns, writer);
    return 0;
}

int bp_cli_stream_provide(bugpack_writer *writer, void *context) {
    const bp_cli_stream *stream = context;
    const bp_child_limits limits = {.deadline_ns =
                                        bp_clock_monotonic_ns() + stream->timeout_ms * BP_NS_PER_MS,
                                    .is_cancelled = is_cancelled};
    bp_cli_tail newest;
    bp_cli_tail_init(&newest, stream->limit_bytes, stream->kind == BP_CLI_STREAM_WHOLE);
    int result;
    switch (stream->kind) {
    case BP_CLI_STREAM_JOURNAL:
        result = provide_journal(stream, &limits, &newest, writer);
        break;
    case BP_CLI_STREAM_COMMAND:
    case BP_CLI_STREAM_SHELL:
        result = provide_command(stream, &limits, &newest, writer);
        break;
    case BP_CLI_STREAM_LOG:
    case BP_CLI_STREAM_WHOLE:
    default:
        result = provide_stream(stream, &limits, &newest, writer);
        break;
    }
    bp_cli_tail_release(&newest);
    return result;
}
