#include "cli/stream.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/utf8.h"
#include "cli/interrupt.h"
#include "cli/words.h"
#include "run/program.h"

enum { piece_bytes = 16 * 1024 };

/* The newest whole lines of a stream. */
typedef struct tail {
    bp_buffer kept; /* at least the newest `limit_bytes` and one byte more */
    size_t limit_bytes;
    uint64_t total_bytes;
    bool is_whole; /* fail with LIMIT instead */
} tail;

/* A bp_sink. */
static bugpack_status keep(void *context, const void *bytes, size_t byte_count) {
    tail *newest = context;
    bp_buffer *kept = &newest->kept;
    (void)bp_buffer_append(kept, bytes, byte_count);
    newest->total_bytes += byte_count;
    if (newest->is_whole && newest->total_bytes > newest->limit_bytes) {
        return BUGPACK_ERR_LIMIT;
    }
    if (kept->size > 2 * newest->limit_bytes + piece_bytes) {
        size_t rest_bytes = newest->limit_bytes + 1;
        memmove(kept->data, kept->data + kept->size - rest_bytes, rest_bytes);
        kept->size = rest_bytes;
    }
    return kept->status;
}

/* Where what is written begins: at a line, or where there is only one, at a character. */
static size_t find_begin(const tail *newest) {
    const bp_buffer *kept = &newest->kept;
    if (newest->total_bytes <= newest->limit_bytes) {
        return 0;
    }
    size_t cut = kept->size - newest->limit_bytes;
    const char *newline = memchr(kept->data + cut - 1, '\n', kept->size - cut);
    if (newline != NULL) {
        return (size_t)(newline + 1 - kept->data);
    }
    while (cut < kept->size && bp_utf8_cut(kept->data, kept->size, cut) != cut) {
        cut++;
    }
    return cut;
}

/* Writes what was kept, and tells the manifest what was not. */
static void write_tail(const tail *newest, bugpack_writer *writer) {
    size_t begin = find_begin(newest);
    (void)bugpack_write(writer, newest->kept.data + begin, newest->kept.size - begin);
    if (newest->total_bytes > newest->limit_bytes) {
        bugpack_truncate(writer, false, "the newest whole lines are kept, of %llu bytes",
                         (unsigned long long)newest->total_bytes);
    }
}

static bool is_cancelled(const void *nothing) {
    (void)nothing;
    return bp_cli_interrupt_came();
}

static int provide_stream(const bp_cli_stream *stream, const bp_child_limits *limits, tail *newest,
                          bugpack_writer *writer) {
    /* Not blocked by a FIFO that nobody writes to. */
    int fd = strcmp(stream->source, "-") == 0
                 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                 : open(stream->source,
                        O_RDONLY | O_NONBLOCK | O_CLOEXEC | (stream->is_found ? O_NOFOLLOW : 0));
    if (fd < 0) {
        return bugpack_fail(writer, "cannot open \"%s\": %s", stream->source, strerror(errno));
    }
    /* A FIFO without a writer is not at its end as long as nobody has written. */
    const bp_child_output outputs[] = {{fd, keep, newest}, {.fd = -1}};
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
    write_tail(newest, writer);
    if (status == BUGPACK_ERR_TIMEOUT) {
        bugpack_truncate(writer, false, "%llu bytes came within %.1f s, and it had not ended",
                         (unsigned long long)newest->total_bytes, stream->timeout_ms / 1000.0);
    }
    return 0;
}

static int provide_journal(const bp_cli_stream *stream, const bp_child_limits *limits, tail *newest,
                           bugpack_writer *writer) {
    /* A line begins with 32 bytes of time: the size is the limit that counts. */
    char lines[40];
    (void)snprintf(lines, sizeof lines, "--lines=%llu",
                   (unsigned long long)(stream->limit_bytes / 32 + 1));
    const char *const arguments[] = {"journalctl", "--no-pager", "--output=short-iso-precise",
                                     lines,        "--unit",     stream->source,
                                     NULL};
    const bp_run_program program = {
        .arguments = arguments, .sink = keep, .context = newest, .limits = *limits};
    bp_run_program_end end;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_run_program_run(&program, &end, &error);
    if (status == BUGPACK_OK) {
        status = bp_run_program_judge(&program, &end, &error);
    }
    if (status != BUGPACK_OK) {
        return bugpack_fail(writer, "%s", error.message);
    }
    write_tail(newest, writer);
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

static int provide_command(const bp_cli_stream *stream, const bp_child_limits *limits, tail *newest,
                           bugpack_writer *writer) {
    const char *const shell[] = {"/bin/sh", "-c", stream->source, NULL};
    const char *reason = "";
    char **words =
        stream->kind == BP_CLI_STREAM_SHELL ? NULL : bp_cli_words(stream->source, &reason);
    if (words == NULL && stream->kind != BP_CLI_STREAM_SHELL) {
        return bugpack_fail(writer, "%s", reason);
    }
    const bp_run_program program = {.arguments = words != NULL ? (const char *const *)words : shell,
                                    .sink = keep,
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
    write_tail(newest, writer);
    write_end(stream, status, &end, began_ns, writer);
    return 0;
}

int bp_cli_stream_provide(bugpack_writer *writer, void *context) {
    const bp_cli_stream *stream = context;
    const bp_child_limits limits = {.deadline_ns =
                                        bp_clock_monotonic_ns() + stream->timeout_ms * BP_NS_PER_MS,
                                    .is_cancelled = is_cancelled};
    tail newest = {.limit_bytes = (size_t)stream->limit_bytes,
                   .is_whole = stream->kind == BP_CLI_STREAM_WHOLE};
    bp_buffer_init(&newest.kept, 2 * newest.limit_bytes + 2 * piece_bytes);
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
    bp_buffer_release(&newest.kept);
    return result;
}
