/*
 * The stacks of a process's threads: stacks.json, and stacks.txt in the form of gdb's "thread apply
 * all bt".
 */
#ifndef BP_MODEL_STACKS_H
#define BP_MODEL_STACKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/json.h"
#include "model/frame_text.h"
#include "model/signature.h"

/* A file that code of a frame is from. */
typedef struct bp_stack_module {
    char *path;          /* as the process sees it */
    uint64_t start;      /* where it is loaded */
    uint64_t file_start; /* the address in the file of what is loaded there; 0 unless it is fixed */
    char build_id[65];   /* "" when it has none, or it was not read */
    char trouble[160];   /* why it could not be read, or not as a whole; "" when it was */
} bp_stack_module;

/* A function that the compiler put into its caller. */
typedef struct bp_stack_inlined {
    char *symbol, *demangled; /* as in bp_stack_place */
    char *source;             /* where it is; NULL: not known */
    int line;
} bp_stack_inlined;

/* An address in code. Frames share it. */
typedef struct bp_stack_place {
    uint64_t address;
    bool is_call;           /* a return address: its call is before it */
    bool is_signal;         /* where the kernel lets a signal handler return to */
    uint32_t module;        /* index; BP_STACK_NO_MODULE: code that was made at run time */
    char *symbol;           /* as the file has it; NULL: not known */
    char *demangled;        /* of a C++ symbol; NULL otherwise */
    uint64_t symbol_offset; /* of the address from the symbol */
    char *source;           /* where the symbol's function is; NULL: not known */
    int line;
    bp_stack_inlined *inlined; /* in that function, innermost first */
    size_t inlined_count;
} bp_stack_place;

#define BP_STACK_NO_MODULE UINT32_MAX

/* The most inlined functions of a place; beyond it, the outermost one is an ellipsis. */
#define BP_STACK_INLINED_MAX 64

typedef struct bp_stack_frame {
    uint32_t place;
    bool is_by_frame_pointer; /* the frame before it has no unwind table: it may be wrong */
} bp_stack_frame;

/* A function of Python that was called; its texts are owned. */
typedef struct bp_python_frame {
    char *function, *source; /* the second may be NULL */
    int line;                /* 0: not known */
} bp_python_frame;

typedef enum bp_stack_state {
    BP_STACK_BLOCKED, /* has a stack; was not stopped */
    BP_STACK_STOPPED, /* has one, as it was stopped for an instant */
    BP_STACK_CRASHED, /* has one, of the instant of its signal */
    BP_STACK_RUNNING, /* has none */
    BP_STACK_MOVED,   /* it ran again at each attempt */
    BP_STACK_UNREAD   /* for the reason given */
} bp_stack_state;

typedef struct bp_stack_thread {
    uint64_t tid;
    char name[64]; /* any bytes */
    bp_stack_state state;
    uint64_t stopped_ns; /* for how long at most */
    size_t first_frame, frame_count;
    char reason[200]; /* why there is no stack, or why it ends early; "" when it is complete */
    size_t first_python, python_count; /* of python_frames */
    const char *python_reason; /* why frames of Python are missing; NULL: none is, or has none */
} bp_stack_thread;

typedef struct bp_stacks {
    uint64_t pid;
    bp_stack_module *modules;
    size_t module_count;
    bp_stack_place *places;
    size_t place_count;
    bp_stack_frame *frames; /* innermost first */
    size_t frame_count;
    bp_stack_thread *threads; /* ascending by tid, as the kernel lists them */
    size_t thread_count;
    bp_python_frame *python_frames; /* innermost first */
    size_t python_frame_count;
    char python_version[16];  /* "3.11.7"; "": not known */
    char python_reason[80];   /* why no thread has such frames; "" where they were read */
    size_t passed_over_count; /* threads that are not listed: limits, or no time left */
    size_t vanished_count;    /* likewise: they had ended when they were read */
    char *exception_type;     /* plain, of the exception that a crashed thread had; NULL: none */
    const char *language;     /* "Python", … whose interpreter is loaded; NULL: none is known */
    bool is_of_all;           /* threads were stopped where that was needed */
    bool is_of_crash;         /* as the process crashed: one thread is CRASHED */
    bool is_mangled;          /* C++ symbols are as they are in the file: no demangler was found */
    bool lacked_memory;       /* so names, lines or frames may be missing */
    size_t undescribed_count; /* places without names or lines, as there was no time for them */
} bp_stacks;

/*
 * Knows names, lines of source and inlined functions of code that a report names without them. All
 * zero: knows nothing. One thread; whoever has it calls `free`.
 */
typedef struct bp_frame_finder {
    void *self;
    /* Finds the code `offset` bytes from where a file with that build id is loaded. False where it
     * is not known; else the caller releases the place. */
    bool (*find)(void *self, const char *path, const char *build_id, uint64_t offset, bool is_call,
                 bp_stack_place *ret_place);
    void (*free)(void *self);
} bp_frame_finder;

void bp_stacks_release(bp_stacks *stacks);
void bp_stack_place_release(bp_stack_place *place);

/* Function number `index` of a frame: those that were inlined, innermost first, then its own. Texts
 * are borrowed. */
bp_frame_text bp_stacks_frame_text(const bp_stacks *stacks, const bp_stack_frame *frame,
                                   size_t index);

/* Adds the frames of a thread to the stack of a signature. */
void bp_stacks_sign(const bp_stacks *stacks, const bp_stack_thread *thread,
                    bp_signature_stack *signed_stack);

/* Adds members of the open object: whether the stack is complete, and its frames. */
void bp_stacks_add_frames(const bp_stacks *stacks, const bp_stack_thread *thread, bp_json *json);

/* The functions of Python, and why some are missing. */
void bp_stacks_add_python(const bp_stacks *stacks, const bp_stack_thread *thread, bp_json *json);

/* The number of threads in this state. */
size_t bp_stacks_count(const bp_stacks *stacks, bp_stack_state state);

/* A sentence about what is missing beside whole threads; false where nothing is. */
enum { BP_STACKS_LOSS_BYTES = 100 };
bool bp_stacks_describe_loss(const bp_stacks *stacks, char out[BP_STACKS_LOSS_BYTES]);

/* The longest time that a thread was stopped, rounded up. */
uint64_t bp_stacks_longest_stop_us(const bp_stacks *stacks);

/* These append the document, or the text. NO_MEMORY, LIMIT of the buffer. */
bugpack_status bp_stacks_print_json(const bp_stacks *stacks, bp_buffer *out, bugpack_error *error);
bugpack_status bp_stacks_print_text(const bp_stacks *stacks, bp_buffer *out, bugpack_error *error);

#endif
