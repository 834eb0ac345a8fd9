/*
 * A frame of a stack as a person reads it. Whoever prints frames prints them with this: stacks.txt,
 * and the readers from stacks.json and crash.json. Pure.
 */
#ifndef BP_MODEL_FRAME_TEXT_H
#define BP_MODEL_FRAME_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"

enum {
    BP_FRAME_NAME_BYTES = 64, /* of a short name, with its NUL */
    BP_FRAME_LIST_BYTES = 160 + BP_FRAME_NAME_BYTES + 4
};

/* The facts about a frame; NULL if unknown. Texts are borrowed, and any bytes. */
typedef struct bp_frame_text {
    const char *symbol, *demangled;
    const char *module;             /* a path */
    uint64_t address, file_address; /* the second as addr2line takes it, with a module */
    const char *source;
    uint64_t line; /* of `source` */
    bool is_inlined, is_signal, is_by_frame_pointer;
    bool is_python; /* a function of Python, which has no address */
} bp_frame_text;

/*
 * "app::parse<int>", for a line with several: without the version of the symbol, the marks of a
 * compiler's clone, parameters and, but of an operator, the result's type; a long one is cut with
 * an ellipsis. A frame without a name is "viewer+0x1221", in no file "0x7f3c". Where a signal
 * handler returns to, it is gdb's words for that. A function of Python has its place, "take
 * (app.py:12)", as names such as "<module>" need one. Never "".
 */
void bp_frame_short_name(const bp_frame_text *frame, char out[BP_FRAME_NAME_BYTES]);

/* Appends the same name whole, where a line is only for it. False where the frame has none. */
bool bp_frame_append_name(bp_buffer *out, const bp_frame_text *frame);

/* True for code of the C or C++ library, or of a module that comes with Python; the second one, for
 * code of Python itself. */
bool bp_frame_is_of_library(const bp_frame_text *frame);
bool bp_frame_is_of_interpreter(const bp_frame_text *frame);

/* Appends a name of at most so many bytes. One from outside must not begin a line that looks like
 * ours: bytes that a terminal could obey become '?'. */
void bp_frame_append_plain(bp_buffer *out, const char *text, size_t byte_count);

/* "#1  0x00007f5e3c8 in poll () from /lib/libc.so.6 (+0xf8e2f)", or "at source.c:12", as gdb prints
 * it, and a newline. A function of Python is "#1  in take at app.py:12". */
void bp_frame_append_line(bp_buffer *out, const bp_frame_text *frame, size_t number);

/*
 * "poll < wait_for_frame < main", innermost first. What stands in a row is counted ("walk ×12"),
 * and an ellipsis stands for all that finds no room, or was not found. Behind it is the outermost
 * name if others have none: "poll < viewer+0x1221 < … < main". Starts zeroed.
 */
typedef struct bp_frame_list {
    char text[BP_FRAME_LIST_BYTES];
    size_t used;
    char next[BP_FRAME_NAME_BYTES]; /* not yet in `text` */
    size_t next_count;
    size_t next_start;                   /* of what is printed of it */
    char module[BP_FRAME_NAME_BYTES];    /* of the frame before, if it has no name */
    char outermost[BP_FRAME_NAME_BYTES]; /* of those that found no room */
    bool is_full, has_nameless, is_next_nameless;
    bool names_module_once; /* set by the caller: "viewer+0x1221 < +0x1310" */
} bp_frame_list;

void bp_frame_list_add(bp_frame_list *list, const bp_frame_text *frame);

/* Once, after the last frame. `is_complete`: it is the outermost one. */
void bp_frame_list_end(bp_frame_list *list, bool is_complete);

#endif
