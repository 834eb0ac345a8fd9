/*
 * Unwinds threads, one after the other, with libdwfl. Linux only.
 */
#ifndef BP_PROBE_STACK_UNWIND_H
#define BP_PROBE_STACK_UNWIND_H

#include "probe/blocked_thread.h"
#include "probe/stack_modules.h"
#include "probe/stacks.h"

/* What is known of a place beyond what is printed. */
typedef struct bp_place_note {
    bp_stack_rule rule;
    uint32_t next; /* of its bucket: index + 1 */
} bp_place_note;

/* Starts zeroed, with the first four set. */
typedef struct bp_unwinder {
    const bp_libdw *dw;
    const bp_stacks_plan *plan;
    bp_stack_files *files;
    bp_blocked_thread blocked; /* with pid and threads_fd; its stack is the unwinder's */
    bp_stacks out;             /* frames and places are added to it; the caller's to release */
    size_t frame_capacity, place_capacity, note_capacity;
    bp_place_note *notes; /* beside out.places */
    uint32_t *buckets;    /* index + 1 of a place */
    bp_stack_thread *thread;
    bool begins_at_caller; /* of an address that is no code: the next frame is a call */
    bool has_failed;       /* no memory */
    bool was_cut;          /* this thread has more frames */
    bool lacks_register;   /* likewise, and the registers would give them */
} bp_unwinder;

/*
 * libdw 0.188 crashes where an allocation of its own fails. So there must be room for all that it
 * may take, before it is called: what is left to RLIMIT_AS, and to a system that promises no more
 * memory than it has.
 */
bool bp_unwinder_has_room(void);

/* The files must be open, and stay so until bp_unwinder_release. NO_MEMORY, or UNSUPPORTED where
 * libdwfl cannot unwind the process. */
bugpack_status bp_unwinder_open(bp_unwinder *unwinder, bugpack_error *error);
void bp_unwinder_release(bp_unwinder *unwinder);

/*
 * Appends the frames of a thread whose tid is set, and sets its state and reason. 0, also when it
 * has no stack, or an errno: then its state is BP_STACK_UNREAD.
 */
int bp_unwind_thread(bp_unwinder *unwinder, bp_stack_thread *thread);

/* Replaces the frames and the reason of a thread whose tid is set by those of what is in
 * unwinder->blocked.copy. Its state is the caller's to set. */
void bp_unwind_copy(bp_unwinder *unwinder, bp_stack_thread *thread);

/*
 * Adds to `out` what is known of its frames: symbols, files, the interpreter. False without memory.
 * In stack_names.c.
 */
bool bp_unwinder_finish(bp_unwinder *unwinder);

/* Whether this time has come, or nobody waits any more. */
bool bp_unwinder_is_over(const bp_unwinder *unwinder, uint64_t deadline_ns);

#endif
