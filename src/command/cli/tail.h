/*
 * The end of a stream while it is read: its newest whole lines.
 */
#ifndef BP_CLI_TAIL_H
#define BP_CLI_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/provide.h>

#include "base/buffer.h"

typedef struct bp_cli_tail {
    bp_buffer kept; /* at least the newest `limit_bytes` and one byte more */
    size_t limit_bytes;
    uint64_t total_bytes;
    bool is_whole; /* fail with LIMIT instead */
} bp_cli_tail;

void bp_cli_tail_init(bp_cli_tail *newest, uint64_t limit_bytes, bool is_whole);
void bp_cli_tail_release(bp_cli_tail *newest);

/* A bp_sink whose context is a bp_cli_tail. */
bugpack_status bp_cli_tail_keep(void *newest, const void *bytes, size_t byte_count);

/* Writes what was kept, and tells the manifest what was not. */
void bp_cli_tail_write(const bp_cli_tail *newest, bugpack_writer *writer);

#endif
