/*
 * What a collector or a provider writes into, and what the manifest will say of it.
 */
#ifndef BP_REPORT_WRITER_H
#define BP_REPORT_WRITER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <bugpack/provide.h>

#include "archive/archive.h"
#include "base/buffer.h"
#include "base/clock.h"
#include "base/sink.h"
#include "image/png.h"
#include "model/manifest.h"

/* Enough for every channel that a trigger may name, with its NUL. */
#define BP_WRITER_CHANNEL_BYTES 264

/* The state of an artefact that is a picture and nothing else. */
typedef enum bp_writer_picture {
    BP_PICTURE_ANY,
    BP_PICTURE_WANTED,
    BP_PICTURE_WRITTEN
} bp_writer_picture;

/*
 * One artefact while it is made. The functions of provide.h append to `content`; our own collectors
 * also fill the manifest line, but its name. With a sink, `content` is passed on whenever it holds
 * 64 KiB; bp_writer_flush passes on the rest.
 */
struct bugpack_writer {
    bp_buffer content; /* its max_size is what may still be written */
    bp_sink *sink;     /* NULL: none */
    void *sink_context;
    bool is_text;        /* make it valid UTF-8 on the way to the sink */
    bp_archive *archive; /* its open entry is this artefact; NULL: none. See bp_bundle_begin. */
    bp_manifest_line line;
    bp_writer_picture picture;
    bp_pixels pixels; /* a copy of it, until it is encoded */
    /* Set when nobody waits for it any more: a late provider gets TIMEOUT and can stop. */
    atomic_bool is_abandoned;
    /* "" for none. A copy: a provider that hangs outlives the report. */
    char report_channel[BP_WRITER_CHANNEL_BYTES];
};

/* A writer without a sink, for at most `limit_bytes`. */
void bp_writer_init(bugpack_writer *writer, size_t limit_bytes);

/* Frees it, and rolls its entry back where the bundle has not taken it. */
void bp_writer_release(bugpack_writer *writer);

/* bugpack_write as a bp_sink. */
bugpack_status bp_writer_sink(void *writer, const void *bytes, size_t byte_count);

/* For whoever works on it aside: a bp_aside's is_cancelled. */
bool bp_writer_is_abandoned(const void *writer);

/* Passes on what is left in `content`. Reports the first failure, also one of an earlier write. */
bugpack_status bp_writer_flush(bugpack_writer *writer, bugpack_error *error);

/* Sets captured_at and duration_ms of what was begun at `began` and is finished now. */
void bp_writer_stamp(bugpack_writer *writer, bp_instant began);

/* The result of bugpack_report_channel; NULL for none. Copied. */
void bp_writer_set_channel(bugpack_writer *writer, const char *channel);

/* Marks the artefact as absent: drops the content, sets status and reason, counts it missing. */
void bp_writer_refuse(bugpack_writer *writer, bp_artefact_status status, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

/* Marks the artefact as incomplete. `is_missing`: because of a failure, not of a limit. */
void bp_writer_truncate(bugpack_writer *writer, bool is_missing, const char *format, ...)
    BUGPACK_PRINTF(3, 4);

#endif
