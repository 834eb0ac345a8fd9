/*
 * The commands of the program and the exit statuses.
 */
#ifndef BP_CLI_COMMAND_H
#define BP_CLI_COMMAND_H

#include <limits.h>
#include <stddef.h>

/* The exit statuses that scripts may rely on; bugpack(1) lists them. */
typedef enum bp_cli_exit {
    BP_CLI_COMPLETE = 0,
    BP_CLI_FAILED = 1,
    BP_CLI_USAGE = 2,
    BP_CLI_INCOMPLETE = 3, /* written, but an artefact is missing; the manifest says which */
    BP_CLI_NO_PROCESS = 4,
    BP_CLI_TIMED_OUT = 5
} bp_cli_exit;

/* `operand_max` of a command that runs another command: the first operand ends our options. */
#define BP_CLI_OTHER_COMMAND INT_MAX

typedef struct bp_cli_command {
    const char *name;
    const char *summary;                 /* for the list of commands; NULL hides the command */
    const char *usage;                   /* the help above the options */
    const struct bp_cli_option *options; /* ends with a row without a name; NULL: has none */
    const char *notes;                   /* the help below the options */
    int operand_max;                     /* arguments beside the options */
    /* Reports its errors itself. What it is given lives as long as the program. Without options of
     * its own it gets the words of the command line, of which the first is its name. */
    bp_cli_exit (*run)(void *options, char **operands);
    size_t options_bytes;
    const void *defaults; /* of the options; NULL: all zero */
    const char *needed;   /* an operand that there must be; NULL: none */
} bp_cli_command;

/*
 * What can follow the words after the program's name, of which the last is being typed, for the
 * shells in completion/: a line each, with a description behind a tab; or only what kind of word
 * ":file", ":dir", ":pid", ":name" of a process, or ":command".
 */
bp_cli_exit bp_cli_complete(const bp_cli_command *const *commands, size_t command_count,
                            int word_count, char **words);

/* One per file; main.c lists them. */
extern const bp_cli_command bp_cli_calibrate_command;
extern const bp_cli_command bp_cli_copy_threads_command;
extern const bp_cli_command bp_cli_capture_command;
extern const bp_cli_command bp_cli_diff_command;
extern const bp_cli_command bp_cli_heap_command;
extern const bp_cli_command bp_cli_html_command;
extern const bp_cli_command bp_cli_index_command;
extern const bp_cli_command bp_cli_logs_command;
extern const bp_cli_command bp_cli_prune_command;
extern const bp_cli_command bp_cli_recover_command;
extern const bp_cli_command bp_cli_redact_command;
extern const bp_cli_command bp_cli_run_command;
extern const bp_cli_command bp_cli_sample_command;
extern const bp_cli_command bp_cli_send_command;
extern const bp_cli_command bp_cli_trigger_command;
extern const bp_cli_command bp_cli_show_command;
extern const bp_cli_command bp_cli_symbolize_command;
extern const bp_cli_command bp_cli_verify_command;
extern const bp_cli_command bp_cli_watch_command;
extern const bp_cli_command bp_cli_why_command;

/* The path by which a child process can start this program, wherever it is installed. */
#define BP_CLI_OWN_PATH "/proc/self/exe"

#endif
