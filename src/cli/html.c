#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "inspect/html.h"

typedef struct html_options {
    const char *output; /* NULL: standard output */
    uint64_t max_bytes;
} html_options;

/* A bp_sink: the context is a descriptor. */
static bugpack_status write_fd(void *fd, const void *bytes, size_t byte_count) {
    int system_errno = bp_file_write_all(*(int *)fd, bytes, byte_count);
    if (system_errno != 0) {
        bp_cli_say("cannot write the page: %s", strerror(system_errno));
        return BUGPACK_ERR_IO;
    }
    return BUGPACK_OK;
}

static bugpack_status write_page(bp_report_file *report, const char *path,
                                 const html_options *options, int fd) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_summary *summary = malloc(sizeof *summary);
    bugpack_status status = BUGPACK_ERR_NO_MEMORY;
    if (summary != NULL) {
        status = bp_summary_read(report, path, options->max_bytes, summary, &error);
    }
    if (status == BUGPACK_OK) {
        bp_summary_judge(summary);
        summary->left_bytes = options->max_bytes;
        status = bp_html_write(summary, write_fd, &fd, &error);
        bp_summary_release(summary);
    }
    if (status != BUGPACK_OK && status != BUGPACK_ERR_IO) {
        bp_cli_say("%s", summary == NULL ? "out of memory" : error.message);
    }
    free(summary);
    return status;
}

/* Into a new file, which is removed again on failure. */
static bp_cli_exit write_file(bp_report_file *report, const char *path,
                              const html_options *options) {
    int fd = open(options->output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        bp_cli_say("cannot write \"%s\": %s", options->output, strerror(errno));
        return BP_CLI_FAILED;
    }
    bugpack_status status = write_page(report, path, options, fd);
    if (close(fd) != 0 && status == BUGPACK_OK) {
        bp_cli_say("cannot write \"%s\": %s", options->output, strerror(errno));
        status = BUGPACK_ERR_IO;
    }
    if (status != BUGPACK_OK) {
        (void)unlink(options->output);
    }
    return status == BUGPACK_OK ? BP_CLI_COMPLETE : BP_CLI_FAILED;
}

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(html_options, output, 'o', "output", "FILE",
                 "write this new file, not standard output", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_VALUE(html_options, max_bytes, 0, "max-bytes", "BYTES",
                 "read at most this much content (default 256M)", bp_cli_read_size, NULL),
    BP_CLI_OPTIONS_END};

static bp_cli_exit run(int argument_count, char **arguments) {
    html_options options = {.max_bytes = (uint64_t)256 << 20};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_report_file *report = NULL;
    char **operands;
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_html_command, argument_count, arguments, &options, &operands,
                             &result)) {
        return result;
    }
    if (operands[0] == NULL) {
        return bp_cli_say_usage("a report is missing");
    }
    if (bp_report_file_open_any(operands[0], &report, &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    if (options.output != NULL) {
        result = write_file(report, operands[0], &options);
    } else {
        result = write_page(report, operands[0], &options, STDOUT_FILENO) == BUGPACK_OK
                     ? BP_CLI_COMPLETE
                     : BP_CLI_FAILED;
    }
    bp_report_file_close(report);
    return result;
}

const bp_cli_command bp_cli_html_command = {
    "html",
    "write a report as one page for a browser",
    "Usage: bugpack html [OPTION]... REPORT\n"
    "\n"
    "Write a report as one page of HTML that needs no network and runs no script.\n",
    option_rows,
    "Exit status: 0 written, 1 failed, 2 usage.\n",
    1,
    run};
