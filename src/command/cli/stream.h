/*
 * What can be read only once, as standard input, a FIFO, and what a program prints: it has a time
 * limit, and its newest whole lines are kept.
 */
#ifndef BP_CLI_STREAM_H
#define BP_CLI_STREAM_H

#include <stdbool.h>
#include <stdint.h>

#include <bugpack/provide.h>

typedef enum bp_cli_stream_kind {
    BP_CLI_STREAM_LOG,     /* a path, or "-"; over the limit the newest whole lines are kept */
    BP_CLI_STREAM_WHOLE,   /* the same, which fails over the limit */
    BP_CLI_STREAM_JOURNAL, /* what journalctl prints about a unit */
    BP_CLI_STREAM_COMMAND, /* a command, its output and how it ended */
    BP_CLI_STREAM_SHELL    /* the same, run by sh */
} bp_cli_stream_kind;

/* `source` is borrowed. */
typedef struct bp_cli_stream {
    bp_cli_stream_kind kind;
    const char *source;
    bool is_found; /* a FIFO that nobody named: no link to one */
    uint64_t limit_bytes;
    uint32_t timeout_ms;
} bp_cli_stream;

/* A bugpack_provider_callback whose context is a bp_cli_stream. It returns soon after a signal has
 * ended the wait for the report. */
bugpack_provider_callback bp_cli_stream_provide;

#endif
