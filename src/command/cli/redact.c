#include <stdio.h>

#include "cli/destination.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/redaction.h"
#include "cli/review.h"
#include "cli/rewrite.h"
#include "entries/report_file.h"

typedef struct redact_options {
    const char *output_path;
    bool is_list, as_json;
    uint64_t max_zip_bytes;
    bp_cli_redaction redaction;
} redact_options;

static const bp_cli_option option_rows[] = {
    BP_CLI_OUTPUT_OPTION(redact_options, output_path, 'o'),
    BP_CLI_FLAG(redact_options, is_list, 0, "list", "print what is in the report instead"),
    BP_CLI_VALUE(redact_options, redaction.path, 0, "redact", "FILE",
                 "replace also what the rules in FILE match", bp_cli_read_text, &bp_cli_some_text),
    BP_CLI_MAX_SIZE_OPTION(redact_options, max_zip_bytes),
    BP_CLI_FLAG(redact_options, as_json, 0, "json", "print JSON"),
    BP_CLI_OPTIONS_END};

/* The report, and its path; or to standard output. */
static bp_cli_exit write_report(redact_options *options, const char *path) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_rule_set *rules = NULL;
    char *const texts[] = {options->redaction.text};
    if (bp_rule_set_of_texts("rules", texts, texts[0] != NULL, &rules, &error) != BUGPACK_OK) {
        return bp_cli_rewrite_fail(options->as_json, path, &error);
    }
    const bp_cli_rewriting rewriting = {
        .request = {.path = path, .rules = rules, .max_zip_bytes = options->max_zip_bytes},
        .output_path = options->output_path,
        .as_json = options->as_json,
        .event = "redacted",
        .counted = "replaced",
        .words = "replaced"};
    bp_cli_exit result = bp_cli_rewrite(&rewriting);
    bp_rule_set_drop(rules);
    return result;
}

static bp_cli_exit run(void *context, char **operands) {
    redact_options *options = context;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_cli_exit result;
    if (options->is_list == (options->output_path != NULL)) {
        return bp_cli_say_usage("give either --output FILE or --list");
    }
    if (options->is_list && options->max_zip_bytes > 0) {
        return bp_cli_say_usage("--list excludes --max-size");
    }
    if (options->as_json && bp_cli_is_streamed(options->output_path)) {
        return bp_cli_say_usage("--json excludes --output -");
    }
    if (!bp_cli_redaction_prepare(&options->redaction, &result)) {
        return result;
    }
    if (!options->is_list) {
        return write_report(options, operands[0]);
    }
    int fd = -1;
    bugpack_status status = bp_report_input_open(operands[0], &fd, &error);
    if (status == BUGPACK_OK) {
        status = bp_cli_review_print(stdout, fd, operands[0], options->as_json, &error);
    }
    return status == BUGPACK_OK ? bp_cli_finish_output() : bp_cli_say_error(&error);
}

const bp_cli_command bp_cli_redact_command = {
    "redact",
    "replace secrets in an existing report",
    "Usage: bugpack redact ZIP -o FILE\n"
    "       bugpack redact --list ZIP\n"
    "\n"
    "Write a report again without passwords, tokens, keys and card numbers, and print\n"
    "its path. With --max-size, leave out what is worth least. With --list, print\n"
    "what the report holds before it is sent. A ZIP of - is read from standard input.\n",
    option_rows,
    "Exit status: 0 done, 1 failed, 2 usage.\n",
    1,
    .run = run,
    .options_bytes = sizeof(redact_options),
    .needed = "a report"};
