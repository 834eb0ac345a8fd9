/*
 * From samples to lines: unwinds each as it comes, names frames at the end. Linux with libdw only.
 */
#ifndef BP_PROFILE_PROFILE_FOLD_H
#define BP_PROFILE_PROFILE_FOLD_H

#include "platform/linux/perf_records.h"
#include "profile/profile.h"
#include "stacks/unwinder.h"

/* The name of a thread as it was at its first sample. */
typedef struct bp_sampled_thread {
    int32_t tid;
    char name[20];
    bool is_ours; /* a thread of bugpack, which is left out */
} bp_sampled_thread;

/* Starts zeroed except for its first members. One thread. */
typedef struct bp_profile_fold {
    pid_t pid;
    uint64_t birth;
    const atomic_bool *stop; /* becomes true when nobody waits any more */
    bp_profile *out;
    uint64_t deadline_ns; /* monotonic; later samples are not unwound */

    bp_unwinder unwinder;
    bool is_open;
    bool is_stale; /* the process has mapped more code since */
    uint64_t opened_ns;
    bp_sampled_thread *threads;
    size_t thread_count, thread_capacity;
    uint32_t *words; /* of each sample its thread and marks, how many places, and these */
    size_t word_count, word_capacity;
    bugpack_status status; /* the first failure; then samples are dropped */
    bugpack_error error;
} bp_profile_fold;

/* Takes one record, of which only samples of the process count. */
void bp_profile_fold_take(bp_profile_fold *fold, const bp_perf_record *record);

/* Names all frames until `symbols_until_ns`, and releases what it holds; `out` stays. The first
 * failure. */
bugpack_status bp_profile_fold_end(bp_profile_fold *fold, uint64_t symbols_until_ns,
                                   bugpack_error *error);

#endif
