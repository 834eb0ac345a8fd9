/*
 * The options of a command: one table from which the command line is read and the help is printed.
 */
#ifndef BP_CLI_OPTION_H
#define BP_CLI_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/suggest.h"
#include "cli/command.h"

typedef struct bp_cli_option bp_cli_option;

/*
 * Reads the value of an option into its field. On a bad value it reports a usage error and returns
 * false; without memory it says so, and returns false with errno ENOMEM. Texts are borrowed from
 * the command line.
 */
typedef bool bp_cli_reader(const bp_cli_option *option, const char *text, void *field);

/* A word that a value can be, and what is stored for it. */
typedef struct bp_cli_choice {
    const char *name; /* NULL ends an array */
    int value;
} bp_cli_choice;

typedef struct bp_cli_bounds {
    const char *unit; /* of a number, for messages: "seconds" */
    uint32_t smallest, largest;
    uint32_t scale; /* the number is stored multiplied by this */
} bp_cli_bounds;

struct bp_cli_option {
    char letter; /* the short form; 0: none */
    const char *name;
    const char *value;   /* how the help calls the value; NULL for a flag, whose field is a bool */
    const char *help;    /* lines without a final newline */
    bp_cli_reader *read; /* NULL for a flag */
    size_t offset;       /* of the field in the command's options */
    const bp_cli_bounds *bounds;
    const bp_cli_choice *choices; /* NULL: the value is no word */
};

/* Rows for the field of a type: `letter` is 0 for none. A table ends with BP_CLI_OPTIONS_END. */
#define BP_CLI_VALUE(type, field, letter, name, value, help, read, bounds)                         \
    { letter, name, value, help, read, offsetof(type, field), bounds, NULL }
#define BP_CLI_FLAG(type, field, letter, name, help)                                               \
    { letter, name, NULL, help, NULL, offsetof(type, field), NULL, NULL }
#define BP_CLI_CHOICE(type, field, name, value, help, choices)                                     \
    { 0, name, value, help, bp_cli_read_choice, offsetof(type, field), NULL, choices }
#define BP_CLI_PID(type)                                                                           \
    BP_CLI_VALUE(type, pid, 0, "pid", "PID", "the process to examine", bp_cli_read_number,         \
                 &bp_cli_pids)
#define BP_CLI_OPTIONS_END                                                                         \
    { 0, NULL, NULL, NULL, NULL, 0, NULL, NULL }

/* Digits alone, of a number up to `largest`. False for another text. */
bool bp_cli_parse_number(const char *text, uint64_t largest, uint64_t *ret_value);

/* The result of a reader without memory. */
bool bp_cli_say_no_memory(void);

/* Digits only, within the bounds, into a uint32_t or pid_t. */
bp_cli_reader bp_cli_read_number;
/* A time of bp_cli_parse_time, into a uint32_t of milliseconds; the bounds are in seconds. */
bp_cli_reader bp_cli_read_time;
/* A decimal number of seconds, or one that ms, s, m, min, h or d follows. False for another text;
 * only "0" gives 0. */
bool bp_cli_parse_time(const char *text, uint64_t *ret_ms);
/* Bytes, at least 1, with an optional K, M or G (powers of 1,024), into a uint64_t. */
bp_cli_reader bp_cli_read_size;
/* The same, but at least 64K: a size that a report can have. */
bp_cli_reader bp_cli_read_report_size;
/* The text itself into a const char *; the bounds limit its length. */
bp_cli_reader bp_cli_read_text;

/* One of the choices, into an int or an enumeration. */
bp_cli_reader bp_cli_read_choice;
extern const bp_cli_choice bp_cli_stacks[]; /* of a bugpack_stacks */

/* "; did you mean 'x'?" about a mistyped word; "" where no name is near. `before` is put in front
 * of the name. */
enum { BP_CLI_SUGGESTION_BYTES = 128 };
const char *bp_cli_suggest(const bp_suggestion *near, const char *before,
                           char out[BP_CLI_SUGGESTION_BYTES]);

/* Options of several commands. */
#define BP_CLI_CONTENT_BYTES ((uint64_t)256 << 20)
#define BP_CLI_CONTENT_OPTION(type)                                                                \
    BP_CLI_VALUE(type, max_bytes, 0, "max-bytes", "BYTES",                                         \
                 "read at most this much content (default 256M)", bp_cli_read_size, NULL)
#define BP_CLI_MAX_SIZE_OPTION(type, field)                                                        \
    BP_CLI_VALUE(type, field, 0, "max-size", "BYTES",                                              \
                 "leave out what is worth least of a report that\nwould be larger",                \
                 bp_cli_read_report_size, NULL)
extern const bp_cli_bounds bp_cli_pids, bp_cli_windows, bp_cli_some_text;
extern const bp_cli_bounds bp_cli_app_names, bp_cli_descriptions;

/*
 * Reads the command line into `options`, which has the defaults. False when the command is done:
 * the help was printed or the command line is wrong, as `ret_exit` says. Otherwise `ret_operands`
 * gets the operands, up to a NULL.
 */
bool bp_cli_read_options(const bp_cli_command *command, int argument_count, char **arguments,
                         void *options, char ***ret_operands, bp_cli_exit *ret_exit);

bp_cli_exit bp_cli_print_help(const bp_cli_command *command);

#endif
