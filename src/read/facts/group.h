/*
 * The processes of a report as one subject: their sums, and their threads and profiles in one order
 * each. What is printed of each process is in the document already.
 */
#ifndef BP_FACTS_GROUP_H
#define BP_FACTS_GROUP_H

#include "json/tree_maker.h"

/*
 * Adds a process, an object of the tree, to the lists of the root: `all_processes`, the first of
 * the report first, and `processes_of_interest`.
 */
void bp_make_group_member(bp_json_maker *maker, const bp_json_tree *process, bool is_interesting);

/* Adds a thread of a profile to those of all processes. Returns how many find no room any more. */
uint64_t bp_make_group_stack(bp_json_maker *maker, const char *name, uint64_t pid, uint64_t samples,
                             double share, const char *path);

/* Counts that the lists do not hold. */
typedef struct bp_group_counts {
    uint64_t unread_processes, other_threads;
    uint64_t samples, other_stacks; /* of all profiles */
} bp_group_counts;

/*
 * Completes the root after the last process: `group`, the sums of a report about several, and
 * `processes`, by CPU: idle ones with the same title are one row; at most 12 rows.
 * `other_processes` and `other_threads`, how many found no room. `profile_threads`: those of all
 * profiles, which have `profile_samples`; `other_profile_threads`.
 */
void bp_make_group(bp_json_maker *maker, const bp_group_counts *counts);

#endif
