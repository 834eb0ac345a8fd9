/*
 * The processes of a report as one subject: their sums, and their threads and profiles in one order
 * each. From the document of facts, which has each process already.
 */
#ifndef BP_FACTS_GROUP_H
#define BP_FACTS_GROUP_H

#include "json/tree_maker.h"

/*
 * Adds to the root, which has `_first_process` and `further_processes`:
 * `group`, the sums of a report about several processes, and `_processes`, by CPU: idle ones with
 * the same title are one row; at most 12 rows. `_other_processes`, how many found no room.
 * `_threads` and `_other_threads` of all processes, as bp_make_threads makes them of each;
 * `_idle_threads`, `text` of each process of interest; `_own_threads` and `_own_count` of the
 * first.
 * `_profile`: `profile` of all.
 */
void bp_make_group(bp_json_maker *maker);

/* The processes of interest, or all, the first of the report first; NULL before it, and after the
 * last. */
const bp_json_tree *bp_group_next_of_all(const bp_json_tree *document, const bp_json_tree *process);
const bp_json_tree *bp_group_next(const bp_json_tree *document, const bp_json_tree *process);

#endif
