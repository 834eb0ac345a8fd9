/*
 * The lines of a manifest, by name: what it says of each artefact. The manifest may be hostile.
 */
#ifndef BP_ENTRIES_MANIFEST_LINES_H
#define BP_ENTRIES_MANIFEST_LINES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/tree.h"

/* The texts are the tree's; "" for a name or status that is not there, and sha256 may be NULL. */
typedef struct bp_manifest_row {
    const char *name, *status, *sha256;
    uint64_t bytes;
    bool has_bytes;
    bool is_in_zip; /* for the caller to set */
} bp_manifest_row;

typedef struct bp_manifest_lines {
    bp_manifest_row *lines; /* by name */
    size_t count;
    bool has_sha256;   /* at least one has */
    bool lacks_name;   /* a line has no name, or no status */
    bool repeats_name; /* two have the same name */
} bp_manifest_lines;

/* Lists the artefacts of a manifest, which outlives the list. NO_MEMORY. */
bugpack_status bp_manifest_lines_read(const bp_json_tree *manifest, bp_manifest_lines *ret_lines,
                                      bugpack_error *error);
void bp_manifest_lines_release(bp_manifest_lines *lines);

/* NULL if there is none of that name. */
bp_manifest_row *bp_manifest_lines_find(const bp_manifest_lines *lines, const char *name);

/* True if the line says that its entry is in the zip. */
bool bp_manifest_row_is_present(const bp_manifest_row *line);

/* Appends what the manifest of a redacted report says was not searched, with the names of channels
 * in brackets: "screenshot.png, traffic.pcap (usb)". Nothing where all was. Escaped. */
void bp_manifest_append_unsearched(bp_buffer *out, const bp_json_tree *manifest);

/* Appends the channels of a manifest line that keep every byte, in brackets; nothing without one.
 */
void bp_manifest_append_exact_channels(bp_buffer *out, const bp_json_tree *line);

/* Appends a text of a report for a terminal, which it could obey otherwise. */
void bp_manifest_append_safe(bp_buffer *out, const char *text);

#endif
