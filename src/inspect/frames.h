/*
 * The frames of stacks.json and crash.json, as they are printed.
 */
#ifndef BP_INSPECT_FRAMES_H
#define BP_INSPECT_FRAMES_H

#include "model/frame_text.h"
#include "json/tree.h"

/* What a member of `frames` says; it borrows from the tree. */
bp_frame_text bp_frame_read(const bp_json_tree *frame);

/* "poll < wait_for_frame < main", of an object with `frames`; "" without any. */
void bp_frames_print(const bp_json_tree *stack, char out[BP_FRAME_LIST_BYTES]);

#endif
