/*
 * Parts of a manifest as text for one line of output. The manifest may be hostile.
 */
#ifndef BP_ENTRIES_MANIFEST_LINES_H
#define BP_ENTRIES_MANIFEST_LINES_H

#include "base/buffer.h"
#include "json/tree.h"

/* Appends what the manifest of a redacted report says was not searched, with the names of channels
 * in brackets: "screenshot.png, traffic.pcap (usb)". Nothing where all was. Escaped. */
void bp_manifest_append_unsearched(bp_buffer *out, const bp_json_tree *manifest);

/* Appends the channels of a manifest line that keep every byte, in brackets; nothing without one.
 */
void bp_manifest_append_exact_channels(bp_buffer *out, const bp_json_tree *line);

/* Appends a text of a report for a terminal, which it could obey otherwise. */
void bp_manifest_append_safe(bp_buffer *out, const char *text);

#endif
