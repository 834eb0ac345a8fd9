#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "cli/option.h"
#include "cli/output.h"
#include "inspect/html.h"
#include "probe/stacks.h"

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

static bugpack_status write_page(bp_facts *facts, const html_options *options, int fd) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    facts->left_bytes = options->max_bytes;
    bugpack_status status = bp_html_write(facts, write_fd, &fd, &error);
    if (status != BUGPACK_OK && status != BUGPACK_ERR_IO) {
        bp_cli_say("%s", error.message);
    }
    return status;
}

/* Into a new file, which is removed again on failure. */
static bugpack_status write_file(bp_facts *facts, const html_options *options) {
    int fd = open(options->output, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        bp_cli_say("cannot write \"%s\": %s", options->output, strerror(errno));
        return BUGPACK_ERR_IO;
    }
    bugpack_status status = write_page(facts, options, fd);
    if (close(fd) != 0 && status == BUGPACK_OK) {
        bp_cli_say("cannot write \"%s\": %s", options->output, strerror(errno));
        status = BUGPACK_ERR_IO;
    }
    if (status != BUGPACK_OK) {
        (void)unlink(options->output);
    }
    return status;
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
    bp_facts *facts = NULL;
    char **operands;
    bp_cli_exit result;
    if (!bp_cli_read_options(&bp_cli_html_command, argument_count, arguments, &options, &operands,
                             &result)) {
        return result;
    }
    if (operands[0] == NULL) {
        return bp_cli_say_usage("a report is missing");
    }
    if (bp_facts_open(operands[0], options.max_bytes, false, bp_frame_finder_new(), &facts,
                      &error) != BUGPACK_OK) {
        bp_cli_say("%s", error.message);
        return BP_CLI_FAILED;
    }
    bool has_file = options.output != NULL && strcmp(options.output, "-") != 0;
    bugpack_status status =
        has_file ? write_file(facts, &options) : write_page(facts, &options, STDOUT_FILENO);
    bp_facts_close(facts);
    return status == BUGPACK_OK ? BP_CLI_COMPLETE : BP_CLI_FAILED;
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
    run};
