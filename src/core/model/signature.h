/*
 * The signature of a report: the part that all reports of one bug share, and others do not. It is
 * the cause and the first functions of the program, as "crash SIGSEGV: parse_header <
 * read_message". It has no addresses, ids, lines or versions, so that it is the same on each
 * machine and in each build that has the bug. Pure.
 */
#ifndef BP_MODEL_SIGNATURE_H
#define BP_MODEL_SIGNATURE_H

#include <stdbool.h>
#include <stddef.h>

#include "json/json.h"
#include "model/frame_text.h"

enum {
    BP_SIGNATURE_BYTES = 320,
    BP_SIGNATURE_FRAME_MAX = 2, /* of a stack */
    BP_SIGNATURE_STACK_MAX = 3  /* as of a deadlock */
};

typedef struct bp_signature {
    char text[BP_SIGNATURE_BYTES]; /* "": none */
    bool is_weak;                  /* names no place: different bugs may have the same */
} bp_signature;

/* The functions of a stack, of the program's own files or of libraries. */
typedef struct bp_signature_names {
    char names[BP_SIGNATURE_FRAME_MAX][BP_FRAME_NAME_BYTES]; /* innermost first */
    size_t count;
} bp_signature_names;

/*
 * The functions of one stack that a signature names: the innermost of the program's own files, and
 * without these of libraries. Functions that debug data call inlined are passed over, as a stack
 * without debug data does not have them. Starts zeroed.
 */
typedef struct bp_signature_stack {
    bp_signature_names own, library;
    char module[BP_FRAME_NAME_BYTES]; /* of the innermost own frame if it has no name */
    bool is_over;                     /* no more of its frames count, except those of Python */
} bp_signature_stack;

/* Takes each frame, innermost first, and those of Python last. */
void bp_signature_take(void *stack, const bp_frame_text *frame);

/* The id of a diagnosis, or the kind of a report, with a detail or ""; `is_named`: these name the
 * bug, and are no weak signature. The order of the stacks, whose places are the threads, does not
 * matter. */
void bp_signature_make(bp_signature *ret_signature, const char *cause, const char *detail,
                       bool is_named, const bp_signature_stack *stacks, size_t stack_count);

/* Adds `signature`, and `weak_signature` if it is; nothing for "". */
void bp_signature_add(bp_json *json, const bp_signature *signature);

#endif
