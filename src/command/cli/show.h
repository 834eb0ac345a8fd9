/*
 * The first screen of a report, and how a terminal shows it.
 */
#ifndef BP_CLI_SHOW_H
#define BP_CLI_SHOW_H

#include <stdbool.h>

#include "cli/command.h"
#include "cli/option.h"

typedef struct bp_cli_screen {
    int colour; /* auto, always or never */
    bool has_no_pager;
} bp_cli_screen;

/* The rows of a table whose command has it in `field`. */
#define BP_CLI_SCREEN_OPTIONS(type, field)                                                         \
    BP_CLI_CHOICE(type, field.colour, "color", "WHEN",                                             \
                  "auto (default: on a terminal), always or never", bp_cli_colours),               \
        BP_CLI_FLAG(type, field.has_no_pager, 0, "no-pager", "start no pager on a terminal")

extern const bp_cli_choice bp_cli_colours[];

/* Prints the first screen of the report at `path`. Reports a failure. */
bp_cli_exit bp_cli_show_report(const char *path, const bp_cli_screen *screen);

/* The same as Markdown, with what is attached. */
bp_cli_exit bp_cli_show_markdown(const char *path);

#endif
