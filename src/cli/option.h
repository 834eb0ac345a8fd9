/*
 * Options in the GNU manner, and the numbers in them.
 */
#ifndef BP_CLI_OPTION_H
#define BP_CLI_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* What bp_cli_option_next gives at the end of the options, and for one that is not acceptable. */
#define BP_CLI_OPTION_END (-1)
#define BP_CLI_OPTION_BAD '?'

/* Codes of options without a short form: beyond any character. */
#define BP_CLI_OPTION_LONG_BASE 256

/*
 * The next option's code; its value is in optarg. An option that is unknown or wrongly used is told
 * to the user, and so is an argument that is no option.
 * `short_options` begins with ':'.
 */
int bp_cli_option_next(const char *command, int argument_count, char **arguments,
                       const char *short_options, const struct option *long_options);

/* The same for a command that takes one argument beside its options, given at the end of them. */
int bp_cli_option_next_or_operand(const char *command, int argument_count, char **arguments,
                                  const char *short_options, const struct option *long_options,
                                  const char **ret_operand);

/* The same for a command that takes up to `operand_max` of them; those that there are not are NULL.
 */
int bp_cli_option_next_or_operands(const char *command, int argument_count, char **arguments,
                                   const char *short_options, const struct option *long_options,
                                   int operand_max, const char **ret_operands);

/* The same for a command that is given another one to run, with arguments of its own: given at the
 * end of our options, up to a NULL. `short_options` begins with "+:". */
int bp_cli_option_next_or_command(const char *command, int argument_count, char **arguments,
                                  const char *short_options, const struct option *long_options,
                                  char ***ret_command);

/*
 * Reads a whole text as a decimal number: digits only, no sign, no space. False, and the output
 * untouched, when it is anything else or outside the bounds.
 */
bool bp_cli_option_number(const char *text, uint64_t smallest, uint64_t largest,
                          uint64_t *ret_value);

/* The same for bytes: K, M or G may follow and mean powers of 1,024. At least 1 byte. */
bool bp_cli_option_size(const char *text, uint64_t *ret_bytes);

/*
 * What commands have in common. These tell the user about a value that is not acceptable, for
 * `command`, and then return false.
 */
bool bp_cli_option_pid(const char *command, const char *text, pid_t *ret_pid);
bool bp_cli_option_window(const char *command, const char *text, uint32_t *ret_window_ms);

#endif
