/*
 * Prints lines of logs on standard output.
 */
#ifndef BP_CLI_LOG_PRINT_H
#define BP_CLI_LOG_PRINT_H

#include "base/buffer.h"
#include "base/clock.h"
#include "inspect/logs.h"

typedef struct bp_log_printer {
    uint64_t trigger_ns; /* 0: not known */
    bool has_colour;
    size_t source_columns; /* 0: sources are not named; at most 40 */
    bp_buffer out;         /* a line; its maximum is over 6 times that of a line */
    uint64_t shown_secs;   /* of `shown_time` */
    char shown_time[BP_CLOCK_ISO_BYTES];
} bp_log_printer;

/* Time, seconds from the trigger, level, source, channel and message, escaped. */
void bp_cli_print_log_text(bp_log_printer *printer, const bp_log_line *line);

/* The same as JSON: docs/schema/log-line.schema.json. */
void bp_cli_print_log_json(bp_log_printer *printer, const bp_log_line *line);

#endif
