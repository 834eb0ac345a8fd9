/*
 * What a provider writes into, and what the ledger will say of it.
 */
#ifndef BP_REPORT_WRITER_H
#define BP_REPORT_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <bugpack/provide.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/temp_file.h"
#include "model/manifest.h"

/* Enough for every channel that a trigger may name, with its NUL. */
#define BP_WRITER_CHANNEL_BYTES 264

/*
 * One artefact while it is made. The public functions of provide.h append to `content`; a collector
 * of ours also fills the ledger entry directly. `ledger.name` stays NULL here.
 *
 * What is too much for memory goes to `spool`, which a collector opens with bp_temp_file_open in
 * the report's directory. Where it is open, it is the content, and `content` is left empty. A
 * provider of ours may do so too; its spool is taken as it is, whatever its form.
 */
struct bugpack_writer {
    bp_buffer content;
    bp_temp_file temp_file; /* closed unless a collector opened it */
    bp_manifest_line line;
    /* Set when nobody waits for it any more: a late provider is told so and stops growing it. */
    atomic_bool is_abandoned;
    /* The channel that the report is about, for the provider to ask; "" when it is about none. A
     * copy, because a provider that hangs outlives the order. */
    char report_channel[BP_WRITER_CHANNEL_BYTES];
};

void bp_writer_init(bugpack_writer *writer, size_t limit_bytes);

/* The ledger's captured_at and duration_ms of what was begun at `began` and is read now. */
void bp_writer_stamp(bugpack_writer *writer, bp_instant began);
void bp_writer_release(bugpack_writer *writer);

/* What bugpack_report_channel will say; NULL for none. Copied. */
void bp_writer_set_channel(bugpack_writer *writer, const char *channel);

/* Marks the artefact as not there: drops the content, sets status and reason, counts it missing. */
void bp_writer_refuse(bugpack_writer *writer, bp_artefact_status status, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* Marks the artefact as there but not whole. `is_missing` tells a failure from a limit. */
void bp_writer_truncate(bugpack_writer *writer, bool is_missing, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

#endif
