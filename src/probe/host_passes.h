/*
 * Two passes by a few threads: over the processes, and over their threads in batches. Each reader
 * prints its batch; batches are written to a temporary file in their sequence. Linux only.
 */
#ifndef BP_PROBE_HOST_PASSES_H
#define BP_PROBE_HOST_PASSES_H

#include "base/lock.h"
#include "base/temp_file.h"
#include "probe/host_private.h"

#define BP_HOST_BATCH_THREADS 32u

/* The thread of a process that the second pass reads. */
typedef struct bp_host_place {
    uint32_t process, thread; /* indices */
} bp_host_place;

typedef struct bp_host_passes {
    const bp_host_plan *plan;
    bp_host_process *processes;
    size_t process_count;
    bp_host_place *places;
    size_t place_count, batch_count;
    bp_host_cgroups cgroups;

    atomic_size_t next_process, next_batch, steps_done;
    bp_lock lock; /* for what follows */
    pthread_cond_t changed;
    size_t written_batches;
    bp_temp_file body;
    bugpack_status status; /* the first failure of memory or of the temp_file */
} bp_host_passes;

/* One of our threads. */
typedef struct bp_host_member {
    bp_host_passes *passes;
    bp_host_reader reader;
    bool is_second_pass;
    bool is_caller;  /* the thread that runs the passes is one of ours too, and reports progress */
    bool is_started; /* a thread of its own; not looked at by that thread */
    pthread_t thread;
} bp_host_member;

/* All zero but for the plan and an open body. */
bugpack_status bp_host_passes_init(bp_host_passes *passes, bugpack_error *error);
void bp_host_passes_release(bp_host_passes *passes);

/* Runs one pass on all members. The calling thread is the first; members that cannot be started are
 * left out. Between the passes `places` are filled. */
void bp_host_passes_run(bp_host_member *members, unsigned member_count, bool is_second_pass);

#endif
