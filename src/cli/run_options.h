/*
 * What the command line of `bugpack run` asks for.
 */
#ifndef BP_CLI_RUN_OPTIONS_H
#define BP_CLI_RUN_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/input.h"
#include "run/hotkey.h"
#include "run/pattern.h"

/* What --help prints. */
extern const char bp_cli_run_help[];

/* Strings are borrowed from the command line. */
typedef struct bp_cli_run_options {
    bool help;                 /* wanted instead of a run */
    char **arguments;          /* the command and its arguments, up to a NULL */
    const char *app_name;      /* NULL: the command's name */
    const char *description;   /* NULL: none */
    const char *output_dir;    /* NULL: not given */
    const char *session_path;  /* NULL: none */
    const char *pedantic_dir;  /* NULL: the output directory */
    bool is_pedantic;          /* asked for, or implied by a pattern */
    bp_run_patterns *patterns; /* owned */
    bp_hotkey hotkey;
    uint32_t auto_snapshot_interval_ms; /* 0: never */
    uint32_t auto_snapshot_cap;
    uint64_t log_limit_bytes;
    uint64_t attach_limit_bytes;
    bp_cli_inputs logs;
    bp_cli_inputs attachments;
    bool quiet;
} bp_cli_run_options;

/* Every default; false when there is no memory for them. */
bool bp_cli_run_options_init(bp_cli_run_options *options);
void bp_cli_run_options_release(bp_cli_run_options *options);

/*
 * Reads the command line. False when it is not acceptable, which the user has then been told;
 * release the options either way.
 */
bool bp_cli_run_options_parse(bp_cli_run_options *options, int argument_count, char **arguments);

#endif
