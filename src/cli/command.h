/*
 * What main.c knows of a command, and how the program ends.
 */
#ifndef BP_CLI_COMMAND_H
#define BP_CLI_COMMAND_H

#include <stdbool.h>

#include <bugpack/error.h>

/* The exit statuses that scripts may rely on; bugpack(1) lists them. */
typedef enum bp_cli_exit {
    BP_CLI_COMPLETE = 0,
    BP_CLI_FAILED = 1,
    BP_CLI_USAGE = 2,
    BP_CLI_INCOMPLETE = 3, /* written, but an artefact is missing; the ledger says which */
    BP_CLI_NO_PROCESS = 4,
    BP_CLI_TIMED_OUT = 5
} bp_cli_exit;

/* The exit status of a command that ended because the library gave `status`. */
bp_cli_exit bp_cli_exit_of(bugpack_status status);

/* One word behind "bugpack". */
typedef struct bp_cli_command {
    const char *name;
    const char *summary; /* a few words for the list of commands; NULL keeps it out of there */
    const char *help;    /* what --help prints, whole, with its final newline */
    /* `arguments[0]` is the command's name. Errors are told before it returns. */
    bp_cli_exit (*run)(int argument_count, char **arguments);
} bp_cli_command;

extern const bp_cli_command bp_cli_capture_command;
extern const bp_cli_command bp_cli_diff_command;
extern const bp_cli_command bp_cli_heap_command;
extern const bp_cli_command bp_cli_recover_command;
extern const bp_cli_command bp_cli_run_command;
extern const bp_cli_command bp_cli_sample_command;

/* Whether SIGPIPE was ignored when the program began; the program itself always ignores it. */
extern bool bp_cli_pipe_was_ignored;
/* Not for people: the library runs it to learn the layout of a jemalloc. */
extern const bp_cli_command bp_cli_calibrate_command;

/* How a process that this one starts can start this program, wherever it was installed. */
extern const char bp_cli_own_path[];

#endif
