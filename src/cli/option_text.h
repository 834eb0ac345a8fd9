/*
 * Values of options that several commands have. Each of these tells the user about a value that is
 * not acceptable, for `command`, and then returns false. Texts are borrowed.
 */
#ifndef BP_CLI_OPTION_TEXT_H
#define BP_CLI_OPTION_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/input.h"

/* A value that must not be empty. `option` is its name, with the hyphens. */
bool bp_cli_option_text(const char *command, const char *option, const char *text,
                        const char **ret_text);

/* --app and --description, with the lengths that the library allows. */
bool bp_cli_option_app(const char *command, const char *text, const char **ret_name);
bool bp_cli_option_description(const char *command, const char *text, const char **ret_text);

/* --log-limit and --attach-limit. */
bool bp_cli_option_limit(const char *command, const char *option, const char *text,
                         uint64_t *ret_bytes);

/* --log FILE and --attach [NAME=]FILE. */
bool bp_cli_option_log(const char *command, const char *text, bp_cli_inputs *logs);
bool bp_cli_option_attachment(const char *command, const char *text, bp_cli_inputs *attachments);

#endif
