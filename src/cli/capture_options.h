/*
 * What the command line of `bugpack capture` asks for.
 */
#ifndef BP_CLI_CAPTURE_OPTIONS_H
#define BP_CLI_CAPTURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "cli/input.h"

/* What --help prints. */
extern const char bp_cli_capture_help[];

/* Strings are borrowed from the command line. */
typedef struct bp_cli_capture_options {
    bool help; /* wanted instead of a capture */
    pid_t pid; /* 0: the whole machine */
    bool host;
    bool has_window; /* one was asked for */
    uint32_t window_ms;
    uint32_t timeout_ms; /* 0: none */
    uint64_t log_limit_bytes;
    uint64_t attach_limit_bytes;
    const char *session_path; /* NULL: none */
    const char *app_name;     /* NULL: the target's name */
    const char *description;  /* NULL: none */
    const char *output_dir;   /* NULL: not given */
    const char *output_path;  /* NULL: a standard name in the directory */
    bp_cli_inputs logs;
    bp_cli_inputs attachments;
    bool quiet;
    bool json;
} bp_cli_capture_options;

/* Every default, and nothing to release yet. */
void bp_cli_capture_options_init(bp_cli_capture_options *options);
void bp_cli_capture_options_release(bp_cli_capture_options *options);

/*
 * Reads the command line. False when it is not acceptable, which the user has then been told;
 * release the options either way.
 */
bool bp_cli_capture_options_parse(bp_cli_capture_options *options, int argument_count,
                                  char **arguments);

#endif
