/*
 * The stacks of the threads of a process. docs/HANG_AND_CRASH.md says how they are found.
 */
#ifndef BP_STACKS_STACKS_H
#define BP_STACKS_STACKS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

#include "model/stacks.h"
#include "platform/crash_page.h"

#define BP_STACKS_FRAME_MAX 256               /* of one thread */
#define BP_STACKS_THREAD_MAX 4096             /* of a process */
#define BP_STACKS_FRAMES_MAX ((size_t)100000) /* of all threads */

typedef struct bp_stacks_plan {
    uint64_t birth;            /* of the first thread, as in platform/task.h; 0: any */
    uint64_t deadline_ns;      /* monotonic; threads that were not read by then are passed over */
    uint64_t symbols_until_ns; /* likewise; symbols that were not found by then are left out */
    const atomic_bool *stop;   /* becomes true when nobody waits any more */
    /* Stops threads that run, or whose stack needs their registers, for an instant each. */
    bool stops_threads;
    const char *helper_path; /* of the bugpack command, which does it in our own process */
    bool is_helper_ptracer;  /* see stacks/thread_stop.h */
} bp_stacks_plan;

/*
 * Reads the stacks of process `pid`; 0 is our own. A thread that runs and is not stopped, or that
 * may not be read, is listed with the reason. Frames and symbols are from the unwind tables and
 * symbols of the files that are mapped, and from installed debug files. Of our own process no debug
 * data are read, which took 40 ms and 16 MiB a report, and nothing but libdw is loaded: whoever
 * reads the report adds lines and inlined functions by build ids.
 *
 * Errors: UNSUPPORTED (libdw is missing, or another system), DENIED (no thread may be read),
 * NO_PROCESS, NO_MEMORY, IO. The caller releases `ret_stacks`. Any thread.
 */
bugpack_status bp_stacks_read(pid_t pid, const bp_stacks_plan *plan, bp_stacks *ret_stacks,
                              bugpack_error *error);

/* For a process whose children read stacks: what they would all load or look for is loaded once,
 * and the names that one of them finds the next ones have. In stack_names.c. Any thread. */
void bp_stacks_prepare_children(void);

/*
 * The stacks of the thread that crashed and of those that were blocked then, from their copies and
 * the files that the process ran, where they are still the same. Where the program counter of a
 * crash is in no file, as after a call through a null pointer, the word at the stack pointer is
 * taken for the return address. `is_host`: as in our own process.
 *
 * Errors: UNSUPPORTED (libdw is missing, another system, or a page of another processor),
 * NO_MEMORY, IO. The caller releases it. Any thread.
 */
bugpack_status bp_stacks_read_crash(const bp_crash_page *page, const bp_stacks_plan *plan,
                                    bool is_host, bp_stacks *ret_stacks, bugpack_error *error);

/* Where debug files are sought before those of this machine's packages. All borrowed, and each may
 * be NULL. */
typedef struct bp_debug_places {
    /* Has them by build id, as /usr/lib/debug has, or the program with its debug data, or that file
     * with ".debug" at its end. */
    const char *dir;
    /* Opens the debug file of a build id; -1: there is none. */
    int (*fetch)(void *context, const char *build_id);
    /* Gets the files whose debug file is of another build or damaged, each once, and why. */
    void (*note)(void *context, const char *path, const char *build_id, const char *trouble);
    void *context;
    uint64_t max_ns; /* of all look-ups together */
} bp_debug_places;

/*
 * That of the files and debug files of this machine which have the build ids of a report. Nothing
 * is opened before it is asked, and it knows nothing more when its time is over; with `places` NULL
 * after 5 s. All zero without libdw, or without memory. In stack_names.c.
 */
bp_frame_finder bp_frame_finder_new(const bp_debug_places *places);

#endif
