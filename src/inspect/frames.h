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
/* The same for a screen, of a thread in the system call `call`, "" if it is not known: what is
 * folded at the innermost end is that word with an ellipsis, "futex… < take < main", and a module
 * without names is named once, "viewer+0x1221 < +0x1310". */
void bp_frames_print_at(const bp_json_tree *stack, const bp_frame_finder *finder, const char *call,
                        char out[BP_FRAME_LIST_BYTES]);

/* The same as rows of an object: `frames`, each with `name`, and where they are known `place`, the
 * file of source and the line or the module, and `count`; and `other_frames`, how many found no
 * room. */
void bp_make_frames(bp_json_maker *maker, const bp_json_tree *stack, const bp_frame_finder *finder);

/* The innermost function of the program's own, and not of the C or C++ library; "" without any. */
void bp_frames_print_own(const bp_json_tree *stack, const bp_frame_finder *finder,
                         char out[BP_FRAME_NAME_BYTES]);

#endif
