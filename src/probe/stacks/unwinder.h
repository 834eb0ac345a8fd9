/*
 * Unwinds stacks of one process, one copy after the other, with libdwfl. Linux with libdw only.
 */
#ifndef BP_STACKS_UNWINDER_H
#define BP_STACKS_UNWINDER_H

#include "stacks/stack_files.h"
#include "stacks/stacks.h"
#include "stacks/thread_stop.h"

/* The DWARF number of the stack pointer. */
enum {
#if defined(__aarch64__)
    BP_STACK_POINTER_NUMBER = 31
#elif defined(__x86_64__)
    BP_STACK_POINTER_NUMBER = 7
#else /* unsupported: no stack is unwound from registers on another processor */
    BP_STACK_POINTER_NUMBER = 0
#endif
};

/* Facts about a place beyond those that are printed. */
typedef struct bp_place_note {
    bp_stack_rule rule;
    uint32_t next; /* of its bucket: index + 1 */
} bp_place_note;

/* Starts zeroed except for its pids, its deadline and what its files are to be. It stays where it
 * is. One thread. */
typedef struct bp_unwinder {
    uint64_t deadline_ns; /* monotonic; a stack ends there at the latest */
    pid_t pid;
    int task_fd, memory_fd; /* of a process that runs */
    bp_stack_files files;   /* their process_fd is ours */
    bp_thread_copy copy;    /* of the thread; its stack is ours */
    bp_stacks out;
    size_t frame_capacity, place_capacity, note_capacity;
    bp_place_note *notes; /* beside out.places */
    uint32_t *buckets;    /* index + 1 of a place */
    bp_stack_thread *thread;
    bool begins_at_caller; /* of an address that is no code: the next frame is a call */
    bool has_failed;       /* no memory */
    bool was_cut;          /* this thread has more frames */
    bool lacks_register;   /* likewise, and the registers would give them */
} bp_unwinder;

/* Loads libdw and finds memory. UNSUPPORTED without libdw; NO_MEMORY. Released in any case. */
bugpack_status bp_unwinder_init(bp_unwinder *unwinder, bugpack_error *error);
void bp_unwinder_release(bp_unwinder *unwinder);

/* Opens the process `pid` that began at `birth` (0: any), and lists what it runs. NO_PROCESS,
 * DENIED, UNSUPPORTED (a kernel thread), NO_MEMORY, IO. */
bugpack_status bp_unwinder_open(bp_unwinder *unwinder, uint64_t birth, bugpack_error *error);

/* Hands the files to libdwfl: what bp_unwinder_open does as well. */
bugpack_status bp_unwinder_attach(bp_unwinder *unwinder, bugpack_error *error);

/* NO_PROCESS where the process began another program since it was opened. */
bugpack_status bp_unwinder_check(const bp_unwinder *unwinder, bugpack_error *error);

/* Appends the frames of `copy` to `out`, in place of those that `thread` had, and sets its reason
 * where they are not all. */
void bp_unwinder_unwind(bp_unwinder *unwinder, bp_stack_thread *thread);

/* Drops the last frames, which are those of the thread. */
void bp_unwinder_forget(bp_unwinder *unwinder, bp_stack_thread *thread);

#endif
