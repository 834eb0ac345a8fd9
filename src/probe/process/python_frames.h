/*
 * The functions that the threads of a Python program are in. CPython 3.11 and 3.12 are read by
 * offsets of each version, later ones by those that their _PyRuntime describes. Memory is read
 * without a stop. All of it is the process's, and is checked. Linux only.
 */
#ifndef BP_PROCESS_PYTHON_FRAMES_H
#define BP_PROCESS_PYTHON_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/stacks.h"
#include "process/elf_object.h"
#include "process/remote_memory.h"

/* The offsets that are needed; the first is in _PyRuntime. */
typedef enum bp_python_offset {
    BP_PYTHON_INTERPRETERS,
    BP_PYTHON_NEXT_INTERPRETER,
    BP_PYTHON_THREADS,
    BP_PYTHON_NEXT_THREAD,
    BP_PYTHON_TID,
    BP_PYTHON_FRAME, /* of a thread; before 3.13 by way of a _PyCFrame */
    BP_PYTHON_CODE,  /* of a frame, as the next three */
    BP_PYTHON_PREVIOUS,
    BP_PYTHON_INSTRUCTION,
    BP_PYTHON_OWNER,
    BP_PYTHON_FILE, /* of a code object, as the next four */
    BP_PYTHON_NAME,
    BP_PYTHON_LINES,
    BP_PYTHON_FIRST_LINE,
    BP_PYTHON_INSTRUCTIONS,
    BP_PYTHON_ASCII, /* of a text, where its characters begin if they are ASCII */
    BP_PYTHON_OFFSET_COUNT
} bp_python_offset;

/* Where an interpreter keeps what is asked for. */
typedef struct bp_python_layout {
    bp_memory_reader *read;
    void *context;
    uint64_t version;                                               /* Py_Version; 0: before 3.11 */
    uint64_t version_at, runtime, code_type, text_type, bytes_type; /* 0: not found */
    uint32_t at[BP_PYTHON_OFFSET_COUNT];
    bool has_c_frame;
    uint32_t c_frame, wide; /* offsets in a _PyCFrame, and of other characters behind the ASCII's */
} bp_python_layout;

typedef enum bp_python_support {
    BP_PYTHON_NONE,    /* the file has no interpreter */
    BP_PYTHON_UNREAD,  /* one whose memory cannot be read */
    BP_PYTHON_UNKNOWN, /* one whose version or build is not known */
    BP_PYTHON_KNOWN
} bp_python_support;

/* Finds the addresses of the interpreter in a file that is loaded at `base`. False if it has none.
 */
bool bp_python_layout_find(bp_elf_object *file, uint64_t base, bp_python_layout *layout);

/* Reads the rest of a layout whose addresses were found, by its reader: memory alone. */
bp_python_support bp_python_layout_read(bp_python_layout *layout);

/* Prints "3.11.7". */
enum { BP_PYTHON_VERSION_BYTES = 16 };
void bp_python_print_version(uint64_t version, char out[BP_PYTHON_VERSION_BYTES]);

/* A thread that has run Python. */
typedef struct bp_python_thread {
    uint64_t tid;   /* as the process itself counts */
    uint64_t state; /* address of its PyThreadState */
} bp_python_thread;

/* Lists those of all interpreters, at most `thread_max`. Returns how many. */
size_t bp_python_list_threads(const bp_python_layout *layout, bp_python_thread *threads,
                              size_t thread_max);

enum { BP_PYTHON_FRAME_MAX = 256 };

/* Innermost first. The caller releases the texts. */
typedef struct bp_python_stack {
    bp_python_frame frames[BP_PYTHON_FRAME_MAX];
    size_t count;
    const char *reason; /* why frames are missing; "" when none is */
} bp_python_stack;

/*
 * Reads the frames of a thread before and after their names: only the outer ones that are the same
 * in both are taken, since the thread may run. False without memory.
 */
bool bp_python_read_stack(const bp_python_layout *layout, uint64_t state,
                          bp_python_stack *ret_stack);

#define BP_PYTHON_FRAMES_MAX ((size_t)20000) /* of all threads */

/* Moves the frames behind those of `out`, whose array has room for `capacity`, which is 0 at first.
 * Where there is no more room, `reason` says so. */
void bp_python_move_frames(bp_python_stack *stack, bp_stacks *out, size_t *capacity);

#endif
