#include "entries/manifest_lines.h"

void bp_manifest_append_safe(bp_buffer *out, const char *text) {
    for (; *text != '\0'; text++) {
        unsigned char byte = (unsigned char)*text;
        (void)bp_buffer_append_char(out, byte < 0x20 || byte >= 0x7F ? '?' : *text);
    }
}

void bp_manifest_append_exact_channels(bp_buffer *out, const bp_json_tree *line) {
    const char *before = " (";
    BP_JSON_EACH (channel, bp_json_tree_rows(line, "exact_channels")) {
        const char *name = bp_json_tree_value(channel);
        (void)bp_buffer_append_text(out, before);
        bp_manifest_append_safe(out, name != NULL ? name : "?");
        before = ", ";
    }
    (void)bp_buffer_append_text(out, before[0] == ',' ? ")" : "");
}

void bp_manifest_append_unsearched(bp_buffer *out, const bp_json_tree *manifest) {
    const char *before = "";
    BP_JSON_EACH (line, bp_json_tree_rows(manifest, "artefacts")) {
        if (bp_json_tree_is_true(line, "not_searched")) {
            (void)bp_buffer_append_text(out, before);
            bp_manifest_append_safe(out, bp_json_tree_text_or(line, "name", "?"));
            bp_manifest_append_exact_channels(out, line);
            before = ", ";
        }
    }
}
