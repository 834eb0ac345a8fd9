#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/event.h"
#include "cli/option.h"
#include "cli/output.h"
#include "print/html.h"
#include "stacks/stacks.h"

typedef struct html_options {
    const char *output; /* NULL: standard output */
    uint64_t max_bytes;
    bool as_json;
} html_options;

/* Where a page goes, and why it could not. */
typedef struct page_output {
    int fd, system_errno;
} page_output;

/* A bp_sink. */
static bugpack_status write_bytes(void *context, const void *bytes, size_t byte_count) {
    page_output *output = context;
    output->system_errno = bp_file_write_all(output->fd, bytes, byte_count);
    return output->system_errno == 0 ? BUGPACK_OK : BUGPACK_ERR_IO;
}

static bugpack_status write_page(bp_facts *facts, const html_options *options, int fd,
                                 bugpack_error *error) {
    page_output output = {fd, 0};
    facts->left_bytes = options->max_bytes;
    bugpack_status status = bp_html_write(facts, write_bytes, &output, error);
    return output.system_errno == 0
               ? status
               : bp_fail_errno(error, output.system_errno, "cannot write the page");
}

/* Into a new file, which is removed again on failure. */
static bugpack_status write_file(bp_facts *facts, const html_options *options,
                                 bugpack_error *error) {
    int fd = open(options->output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return bp_fail_errno(error, errno, "cannot write \"%s\"", options->output);
    }
    bugpack_status status = write_page(facts, options, fd, error);
    if (close(fd) != 0 && status == BUGPACK_OK) {
        status = bp_fail_errno(error, errno, "cannot write \"%s\"", options->output);
    }
    if (status != BUGPACK_OK) {
        (void)unlink(options->output);
    }
    return status;
}

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(html_options, output, 'o', "output", "FILE",
                 "write this new file, not standard output", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_CONTENT_OPTION(html_options),
    BP_CLI_FLAG(html_options, as_json, 0, "json", "print a JSON object when FILE is written"),
    BP_CLI_OPTIONS_END};

static const html_options defaults = {.max_bytes = BP_CLI_CONTENT_BYTES};

static bp_cli_exit run(void *context, char **operands) {
    const html_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_facts *facts = NULL;
    bool has_file = options->output != NULL && strcmp(options->output, "-") != 0;
    if (options->as_json && !has_file) {
        return bp_cli_say_usage("--json needs --output FILE");
    }
    bugpack_status status = bp_facts_open(operands[0], options->max_bytes, false,
                                          bp_frame_finder_new(NULL), &facts, &error);
    if (status == BUGPACK_OK) {
        status = has_file ? write_file(facts, options, &error)
                          : write_page(facts, options, STDOUT_FILENO, &error);
    }
    bp_facts_close(facts);
    if (status != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        if (options->as_json) {
            bp_cli_print_failed(stdout, "failed", operands[0], error.message);
        }
        return BP_CLI_FAILED;
    }
    if (!options->as_json) {
        return BP_CLI_COMPLETE;
    }
    BP_CLI_PRINT_EVENT(stdout, "page", 0, {"path", BP_CLI_TEXT, options->output, 0},
                       {"from", BP_CLI_TEXT, operands[0], 0});
    return bp_cli_finish_output();
}

const bp_cli_command bp_cli_html_command = {
    "html",
    "write a report as one page for a browser",
    "Usage: bugpack html [OPTION]... REPORT\n"
    "\n"
    "Write a report as one page of HTML that needs no network and runs no script.\n"
    "A REPORT of - is read from standard input.\n",
    option_rows,
    "Exit status: 0 written, 1 failed, 2 usage.\n",
    1,
    .run = run,
    .options_bytes = sizeof(html_options),
    .defaults = &defaults,
    .needed = "a report"};
