/*
 * The frames of stacks.json and crash.json, as they are printed.
 */
#ifndef BP_ENTRIES_FRAMES_H
#define BP_ENTRIES_FRAMES_H

#include "json/tree_maker.h"
#include "model/frame_text.h"
#include "model/signature.h"
#include "model/stacks.h"

typedef void bp_frame_taker(void *context, const bp_frame_text *frame);

/* Passes on each member of `frames`, an array; with what `finder` knows of those that have no line
 * of source, as those that a host wrote, and the functions inlined there. */
void bp_frames_each(const bp_json_tree *frames, const bp_frame_finder *finder, bp_frame_taker *take,
                    void *context);

/* The same with each member, and what `finder` knows of its place; NULL: nothing. */
typedef void bp_frame_place_taker(void *context, const bp_json_tree *frame,
                                  const bp_stack_place *place);
void bp_frames_each_place(const bp_json_tree *frames, const bp_frame_finder *finder,
                          bp_frame_place_taker *take, void *context);

/* Passes on the functions of Python of an element of stacks.json. */
void bp_frames_each_python(const bp_json_tree *stack, bp_frame_taker *take, void *context);

/*
 * A list for one line begins with the function of the C or C++ library that the program called, and
 * ends with `main`, or with the function of the thread: of a row of frames in these libraries only
 * the outermost is shown, and none behind the last frame of the program's own. On a screen those at
 * the innermost end are one word, the system call: "futex… < take < main".
 */
typedef struct bp_frame_fold {
    bp_frame_taker
        *take; /* of those that are shown; a frame and its texts live as long as the call */
    void *context;
    const char *call;      /* NULL: not for a screen; "": not known */
    size_t pending_count;  /* that the pending one stands for */
    bp_frame_text pending; /* of the library; module NULL: none. Its texts are in `texts` */
    char symbol[256], demangled[256], module[64];
    bool has_own, is_over;
} bp_frame_fold;

/*
 * Where a thread runs Python, the C functions of the interpreter are left out, and those that it
 * called are followed by the functions of Python. Modules that come with Python are folded like a
 * library, unless a thread has no others.
 */

/* Innermost first; the fold is a bp_frame_taker's context. Then the end, once. */
void bp_frame_fold_add(void *fold, const bp_frame_text *frame);
void bp_frame_fold_end(bp_frame_fold *fold);

/* "poll < wait_for_frame < main", of an object with `frames`; "" without any. For a screen `call`
 * is the system call of the thread, "" if it is not known, and else NULL: what is folded at the
 * innermost end is that word with an ellipsis, "futex… < take < main", and a module without names
 * is named once, "viewer+0x1221 < +0x1310". */
void bp_frames_print(const bp_json_tree *stack, const bp_frame_finder *finder, const char *call,
                     char out[BP_FRAME_LIST_BYTES]);

/* The same as rows of an object: `frames`, each with `name`, and where they are known `place`, the
 * file of source and the line or the module, and `count`; and `other_frames`, how many found no
 * room. */
void bp_make_frames(bp_json_maker *maker, const bp_json_tree *stack, const bp_frame_finder *finder);

/* Adds the frames of an object to the stack of a signature, as the report has them: what debug
 * files of this machine say would make it another one. */
void bp_frames_sign(const bp_json_tree *stack, bp_signature_stack *signed_stack);

/* True if a stack has frames of a runtime, as of Java, Node or Go, and else only of the C library:
 * what the thread does is nothing of the program's. */
bool bp_frames_are_of_runtime(const bp_json_tree *stack);

/* The innermost function of the program's own, and not of the C or C++ library, nor, where
 * there is another, of a module that comes with Python; "" without any. */
void bp_frames_print_own(const bp_json_tree *stack, const bp_frame_finder *finder,
                         char out[BP_FRAME_NAME_BYTES]);

#endif
