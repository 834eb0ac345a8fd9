/*
 * manifest.json: the outcome of every artefact that is, or should be, in the report.
 */
#ifndef BP_MODEL_MANIFEST_H
#define BP_MODEL_MANIFEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "model/metadata.h"
#include "model/profile.h"

typedef enum bp_artefact_status {
    BP_ARTEFACT_OK,
    BP_ARTEFACT_TRUNCATED, /* incomplete; `reason` says what is missing */
    BP_ARTEFACT_OMITTED,   /* left out on purpose: over a limit, or nothing to collect */
    BP_ARTEFACT_FAILED,
    BP_ARTEFACT_TIMED_OUT,
    BP_ARTEFACT_DISABLED /* the host or the user turned it off */
} bp_artefact_status;

#define BP_REASON_BYTES 512
#define BP_NOTE_BYTES 300

/* The number of replacements by a rule in an entry. */
typedef struct bp_redaction_count {
    const char *rule; /* borrowed */
    uint64_t count;
} bp_redaction_count;

typedef struct bp_manifest_line {
    const char *name; /* borrowed */
    bp_artefact_status status;
    bool is_missing; /* absent or cut by a failure: the report is incomplete */
    uint64_t bytes;  /* in the report */
    char sha256[65]; /* of those bytes, in hexadecimal digits; "" for an entry that is not there */
    bool has_original_bytes;
    uint64_t original_bytes;   /* before it was cut */
    uint64_t left_out_bytes;   /* for the size of the report; 0: none */
    uint64_t captured_wall_ns; /* 0 leaves it out */
    uint64_t duration_ns;
    /* Both 0 leaves it out; `from` alone is 0 where the oldest was left out. */
    uint64_t covers_from_wall_ns, covers_to_wall_ns;
    bool is_disk_full;          /* of a log: nothing more can be written where it is */
    bool is_unsearched;         /* the rules were not applied to it */
    const char *exact_channels; /* those of the traffic among it, borrowed; each name ends with a
                                   NUL, and the last with two; NULL: none */
    const bp_redaction_count *redactions; /* borrowed; those above 0 */
    size_t redaction_count;
    char note[BP_NOTE_BYTES];     /* about a complete artefact; "" for none */
    char reason[BP_REASON_BYTES]; /* "" for none */
} bp_manifest_line;

/* All triggers of one key in this session, also the suppressed ones. Strings are borrowed and may
 * hold any bytes. */
typedef struct bp_trigger_entry {
    bp_report_kind kind;
    const char *key;        /* the gap key, or the channel; NULL leaves it out */
    uint64_t count;         /* occurrences */
    uint64_t written_count; /* reports on disk */
    uint64_t first_wall_ns, last_wall_ns;
    const char *reason; /* why an occurrence led to no report; NULL or "" when each did */
    uint64_t last_duration_ns, longest_duration_ns; /* of those that are over; 0: none is */
} bp_trigger_entry;

/* The part of such an entry that changes, as of an instant. */
typedef struct bp_trigger_tally {
    uint64_t count, last_wall_ns;
} bp_trigger_tally;

typedef struct bp_manifest {
    const char *report_id;
    bool is_redacted;       /* rules were applied, whatever they found */
    uint64_t max_zip_bytes; /* 0: no limit was set */
    const bp_manifest_line *entries;
    size_t entry_count;
    bp_profile_facts profile; /* not known: none was asked for, or it was refused */
    const bp_trigger_entry *triggers;
    size_t trigger_count; /* 0 leaves `triggers` out */
} bp_manifest;

/* Appends manifest.json. The report is complete when no entry is missing. */
bugpack_status bp_manifest_print(const bp_manifest *manifest, bp_buffer *out, bugpack_error *error);

#endif
