/*
 * Facts of many threads: the names of those of a process, who is in a deadlock,
 * and the processes and threads of the whole machine.
 */
#ifndef BP_FACTS_THREAD_FACTS_H
#define BP_FACTS_THREAD_FACTS_H

#include "diagnose/evidence.h"
#include "json/tree_maker.h"

/* All threads of one name. */
typedef struct bp_threads_of_name {
    char name[64];
    uint64_t count;
    double cpu_percent; /* their sum */
} bp_threads_of_name;

typedef struct bp_thread_names {
    bp_threads_of_name *rows; /* busiest first; from malloc */
    size_t count;
} bp_thread_names;

/* Lists the names of the measured threads of a process. False without memory. */
bool bp_thread_names_list(bp_thread_names *names, const bp_evidence *evidence);

/* The deadlocks of all processes of a report. */
enum { BP_DEADLOCKED_MAX = 16 };
typedef struct bp_deadlocks {
    bool is_any, is_unclear; /* whether one is known, and whether there can be an unknown one */
    char names[BP_DEADLOCKED_MAX][64];
    size_t name_count;
} bp_deadlocks;

void bp_deadlocks_add(bp_deadlocks *deadlocks, const bp_evidence *process);
/* Sorted, as a circle begins anywhere: the same one has the same names in every report. */
void bp_make_deadlocks(bp_json_maker *maker, bp_deadlocks *deadlocks);

/* host-threads.json while it is read by bp_json_tree_each, whose context it is. */
typedef struct bp_machine bp_machine;
extern const bp_json_tree_list bp_machine_lists[];

/* NULL without memory; released by free. The use of the collector, if it is not 0, is that of the
 * capture, and is not ranked. */
bp_machine *bp_machine_new(uint64_t collector_pid);
/* When it was read to its end. CORRUPT if there was no thread in it. */
bugpack_status bp_machine_end(bp_machine *machine, bugpack_error *error);
/* `is_for_screen` adds "no_rss", the mark shown where no memory is known. */
void bp_make_machine(bp_json_maker *maker, const char *key, const bp_machine *machine,
                     const bp_json_tree *system, bool is_for_screen);

#endif
