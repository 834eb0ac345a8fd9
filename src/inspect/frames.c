#include "inspect/frames.h"

#include <stdlib.h>
#include <string.h>

/* A text such as "0x7f3c"; 0 for any other. */
static uint64_t read_hex(const bp_json_tree *frame, const char *key) {
    return strtoull(bp_json_tree_text_or(frame, key, "0"), NULL, 16);
}

bp_frame_text bp_frame_read(const bp_json_tree *frame) {
    bool is_fixed = bp_json_tree_text(frame, "file_address") != NULL;
    bp_frame_text text = {
        .symbol = bp_json_tree_text(frame, "symbol"),
        .demangled = bp_json_tree_text(frame, "demangled"),
        .module = bp_json_tree_text(frame, "module"),
        .address = read_hex(frame, "address"),
        .file_address = read_hex(frame, is_fixed ? "file_address" : "offset"),
        .source = bp_json_tree_text(frame, "source"),
        .is_inlined = bp_json_tree_is_true(frame, "inlined"),
        .is_signal = bp_json_tree_is_true(frame, "signal_frame"),
        .is_by_frame_pointer = bp_json_tree_is_true(frame, "by_frame_pointer"),
    };
    (void)bp_json_tree_uint(frame, "line", &text.line);
    return text;
}

void bp_frames_print(const bp_json_tree *stack, char out[BP_FRAME_LIST_BYTES]) {
    bp_frame_list list = {.used = 0};
    for (const bp_json_tree *frame = bp_json_tree_first(bp_json_tree_array(stack, "frames"));
         frame != NULL; frame = bp_json_tree_next(frame)) {
        const bp_frame_text text = bp_frame_read(frame);
        bp_frame_list_add(&list, &text);
    }
    bp_frame_list_end(&list, bp_json_tree_text(stack, "reason") == NULL);
    memcpy(out, list.text, sizeof list.text);
}
