/*
 * A report while it is made: its entries are streamed into one zip, which gets its name at the end.
 */
#ifndef BP_REPORT_BUNDLE_H
#define BP_REPORT_BUNDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/cancel.h"
#include "model/profile.h"
#include "platform/staged_file.h"
#include "redact/redactor.h"
#include "redact/rule_set.h"
#include "redact/tag.h"
#include "report/trigger_list.h"
#include "report/writer.h"

typedef struct bp_bundle bp_bundle;

/* Where a report is written. Everything is borrowed until the bundle is freed. */
typedef struct bp_bundle_target {
    int dir_fd;
    const char *dir_name;         /* for sentences */
    const char *report_id;        /* for the manifest */
    uint64_t wall_ns;             /* the time of all entries: the trigger's */
    const bp_cancel_token *token; /* NULL: nobody stops it */
    uint64_t max_zip_bytes;       /* of the zip (model/fit.h); 0: no limit */
    bool is_strict;               /* an entry that cannot be written fails the report */
    const bp_rule_set *rules;     /* of redaction; NULL: it is off */
    const bp_tag_key *key;        /* of its tags; NULL: one of its own */
    bp_publish_hook hook;
} bp_bundle_target;

/* An empty report, in a file without a name (platform/staged_file.h). NO_MEMORY, IO. */
bugpack_status bp_bundle_new(const bp_bundle_target *target, bp_bundle **ret_bundle,
                             bugpack_error *error);

/* Frees it; what was not published is gone. NULL is fine. */
void bp_bundle_free(bp_bundle *bundle);

/*
 * Opens the entry `name`, which is copied, for a fresh writer: what is written there is streamed
 * into the zip. One entry is open at a time, until bp_bundle_add or bp_writer_release.
 */
bugpack_status bp_bundle_begin(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                               bugpack_error *error);

/*
 * Takes over what a writer holds, or has streamed, as the artefact `name`, and empties the writer.
 * Artefacts with content become entries of the zip; all become lines of the manifest, also an entry
 * that cannot be written: it does not fail the report. On failure nothing was taken.
 */
bugpack_status bp_bundle_add(bp_bundle *bundle, const char *name, bugpack_writer *writer,
                             bugpack_error *error);

/*
 * The last step of a collector: adds what was made where `made` is OK, else passes `made` on as the
 * failure of the report. The writer is released in any case.
 */
bugpack_status bp_bundle_put(bp_bundle *bundle, const char *name, bugpack_status made,
                             bugpack_writer *writer, bugpack_error *error);

/* Adds the line of an artefact that is left out on request. */
bugpack_status bp_bundle_leave_out(bp_bundle *bundle, const char *name, bugpack_error *error);

/* Appends a text as the entries would have it: without secrets, and with the same tags. NO_MEMORY.
 */
bugpack_status bp_bundle_redact(bp_bundle *bundle, const char *text, bp_buffer *out);

/* Overwrites the secrets in a message that is to be shown in another form (bp_redactor_overwrite).
 * No entry is open. With redaction off it does nothing. NO_MEMORY. */
bugpack_status bp_bundle_overwrite(const bp_bundle *bundle, unsigned char *bytes,
                                   size_t byte_count);

/* The entry that has begun is made of messages, each of which is searched before it is written, by
 * what this returns (bp_redactor_overwrite). NULL with redaction off. */
bp_redactor *bp_bundle_begin_messages(bp_bundle *bundle);

/* Names a channel whose messages in that entry are not searched, for the manifest. NO_MEMORY. */
bugpack_status bp_bundle_add_exact(bp_bundle *bundle, const char *channel);

/* Prints the entries that the rules were not applied to in one line, as bugpack_report_result has
 * it. */
void bp_bundle_unsearched(const bp_bundle *bundle, char *text, size_t text_bytes);

/* The manifest's note on the profile. */
void bp_bundle_set_profile(bp_bundle *bundle, const bp_profile_facts *facts);

/* The number of missing artefacts; their names and reasons, a line each, cut where `text` ends. */
uint32_t bp_bundle_missing(const bp_bundle *bundle, char *text, size_t text_bytes);

/*
 * The disk space that a report takes while it is made, without attachments, whose size is not
 * known: a copy of the rings of `snapshot_bytes`, its compressed entries, and the zip. Each is
 * about as large if they do not compress.
 */
static inline uint64_t bp_bundle_needed_bytes(uint64_t snapshot_bytes) {
    static const uint64_t other_entries_bytes = (uint64_t)1 << 20;
    uint64_t zip_bytes = snapshot_bytes + snapshot_bytes / 16 + other_entries_bytes;
    return snapshot_bytes + 2 * zip_bytes;
}

/*
 * Adds the manifest with these triggers, syncs the zip and gives it the name `stem` + `extension`,
 * with a number if that is taken. It is then whole on disk as `ret_name` (without directory), or
 * absent. CANCELLED or TIMEOUT when the token was due before.
 */
bugpack_status bp_bundle_publish(bp_bundle *bundle, const bp_trigger_list *triggers,
                                 const char *stem, const char *extension, char *ret_name,
                                 size_t name_bytes, uint64_t *ret_zip_bytes, bugpack_error *error);

#endif
