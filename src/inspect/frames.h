/*
 * The frames of stacks.json and crash.json, as they are printed.
 */
#ifndef BP_INSPECT_FRAMES_H
#define BP_INSPECT_FRAMES_H

#include "model/frame_text.h"
#include "model/stacks.h"
#include "json/tree.h"

typedef void bp_frame_taker(void *context, const bp_frame_text *frame);

/* Passes on each member of `frames`, an array; with what `finder` knows of those that have no line
 * of source, as those that a host wrote, and the functions inlined there. */
void bp_frames_each(const bp_json_tree *frames, const bp_frame_finder *finder, bp_frame_taker *take,
                    void *context);

/* "poll < wait_for_frame < main", of an object with `frames`; "" without any. */
void bp_frames_print(const bp_json_tree *stack, const bp_frame_finder *finder,
                     char out[BP_FRAME_LIST_BYTES]);

/* The innermost function of the program's own, and not of the C or C++ library; "" without any. */
void bp_frames_print_own(const bp_json_tree *stack, const bp_frame_finder *finder,
                         char out[BP_FRAME_NAME_BYTES]);

#endif
