#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"
#include "cli/event.h"
#include "cli/option.h"
#include "cli/output.h"
#include "entries/report_file.h"
#include "entries/verify.h"

typedef struct verify_options {
    uint64_t max_bytes;
    bool as_json;
} verify_options;

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(verify_options, max_bytes, 0, "max-bytes", "BYTES",
                 "read at most so many uncompressed bytes\n(default 256M)", bp_cli_read_size, NULL),
    BP_CLI_FLAG(verify_options, as_json, 0, "json", "JSON, an object each line"),
    BP_CLI_OPTIONS_END};

static void print_json(const char *path, const bp_verify_result *result) {
    bool is_whole = result->fault_count == 0;
    const char *faults = is_whole ? NULL : bp_buffer_text(&result->faults);
    BP_CLI_PRINT_EVENT(stdout, "verified", 0, {"path", BP_CLI_TEXT, path, 0},
                       {"whole", BP_CLI_TRUTH, NULL, is_whole},
                       {"entries", BP_CLI_NUMBER, NULL, result->entry_count},
                       {"bytes", BP_CLI_NUMBER, NULL, result->bytes},
                       {"faults", BP_CLI_TEXT, faults, 0});
}

/* One line, whatever a report has in its names. */
static void print_result(const char *path, const bp_verify_result *result) {
    bp_cli_print_escaped(stdout, path);
    if (result->fault_count > 0) {
        (void)fputs(": not whole: ", stdout);
        bp_cli_print_escaped(stdout, bp_buffer_text(&result->faults));
        (void)putchar('\n');
    } else {
        (void)printf(": whole, %zu entries, %" PRIu64 " bytes\n", result->entry_count,
                     result->bytes);
    }
}

/* True if it is whole. What prevents an answer goes to standard error. */
static bool verify(const char *path, const verify_options *options) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_verify_result result;
    int fd = -1;
    bugpack_status status = bp_report_input_open(path, &fd, &error);
    if (status != BUGPACK_OK) {
        if (options->as_json) {
            bp_cli_print_failed(stdout, "failed", path, error.message);
        }
        bp_cli_say("%s", error.message);
        return false;
    }
    status = bp_verify(fd, options->max_bytes, &result, &error);
    bp_file_close(fd);
    if (status != BUGPACK_OK) {
        if (options->as_json) {
            bp_cli_print_failed(stdout, "failed", path, error.message);
        }
        bp_cli_say("\"%s\": %s", path, error.message);
        return false;
    }
    bool is_whole = result.fault_count == 0;
    if (options->as_json) {
        print_json(path, &result);
    } else {
        print_result(path, &result);
    }
    bp_verify_release(&result);
    return is_whole;
}

static const verify_options defaults = {.max_bytes = BP_VERIFY_MAX_BYTES};

static bp_cli_exit run(void *options, char **operands) {
    bool are_whole = true;
    for (char **path = operands; *path != NULL; path++) {
        are_whole = verify(*path, options) && are_whole;
    }
    bp_cli_exit result = bp_cli_finish_output();
    return are_whole ? result : BP_CLI_FAILED;
}

const bp_cli_command bp_cli_verify_command = {
    "verify",
    "check that reports are whole",
    "Usage: bugpack verify [OPTION]... ZIP...\n"
    "\n"
    "Check the structure of each zip, the checksum of every entry, the SHA-256 and\n"
    "the size that the manifest says of it, and that JSON is well-formed. Print one\n"
    "line for each zip, which names every fault with its entry. A ZIP of - is read\n"
    "from standard input.\n",
    option_rows,
    "Exit status: 0 all are whole, 1 one is not, or failed, 2 usage.\n",
    INT_MAX - 1,
    .run = run,
    .options_bytes = sizeof(verify_options),
    .defaults = &defaults,
    .needed = "a report"};
