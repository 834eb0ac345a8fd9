/*
 * What host-threads.json and system.json say of the whole machine.
 */
#ifndef BP_INSPECT_SUMMARY_MACHINE_H
#define BP_INSPECT_SUMMARY_MACHINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json/tree.h"

enum { BP_MACHINE_TASK_MAX = 10, BP_MACHINE_PRESSURES = 3 };

/* A thread, or a process: then with the sums of its threads that were there. */
typedef struct bp_machine_task {
    uint64_t pid, tid;
    char name[64], process[64];
    char state[8]; /* of a thread, as in host-threads.json: "R"; "" if unknown */
    bool is_kernel_thread;
    bool has_cpu, has_percent, has_rss;
    uint64_t cpu_ns; /* since it began */
    /* Of one CPU: over the window, or, in a capture without one, since it began, and then of none
     * younger than 0.1 s. */
    double cpu_percent;
    bool is_born;           /* in the window */
    double children_cpu_ms; /* of a process, in the window: of ended children; 0: not known */
    uint64_t rss_kb;
    uint64_t thread_count, running_count;
} bp_machine_task;

/* The first of some order. */
typedef struct bp_machine_list {
    bp_machine_task rows[BP_MACHINE_TASK_MAX];
    size_t count;
} bp_machine_list;

typedef struct bp_machine {
    bool is_there;          /* a host-threads.json that was read to its end */
    double window_ms;       /* 0: there is none */
    uint64_t collector_pid; /* whose use is that of the capture, and is not ranked; 0: none */
    bool has_collector;     /* it was among the processes, */
    double collector_percent;
    char captured_at[40];
    /* Counted, but for the last, which nobody could look at. */
    uint64_t process_count, thread_count, kernel_thread_count, running_count, blocked_count;
    uint64_t no_rss_count; /* processes that should have one */
    uint64_t denied_process_count;
    bp_machine_list busiest, largest, threads;
    /* Of system.json. */
    bool has_load, has_memory, has_pressure[BP_MACHINE_PRESSURES];
    double load[3], pressure_percent[BP_MACHINE_PRESSURES]; /* "some", over 10 s */
    uint64_t cpu_count;                                     /* 0: not known */
    uint64_t total_kb, available_kb;
    /* While it is read. */
    double end_secs, ticks_per_sec; /* since boot; 0: not known */
    bp_machine_task process;
    double process_age_secs; /* at the end of the capture; negative if unknown */
} bp_machine;

/* "cpu", "memory", "io". */
extern const char *const bp_machine_pressures[BP_MACHINE_PRESSURES];

/* "running", …; the letter itself if it has no word, "?" if there is none. The thread's. */
const char *bp_machine_state_name(const bp_machine_task *thread);

/* What the percents are over: "over 1.00 s", "since they began". */
void bp_machine_name_period(const bp_machine *machine, char *out, size_t out_bytes);

/* For bp_json_tree_each over host-threads.json, whose context is the machine; and then this: what
 * was not read to its end is dropped. */
extern const bp_json_tree_list bp_machine_lists[];
void bp_machine_end(bp_machine *machine, bool is_whole);

void bp_machine_read_system(bp_machine *machine, const bp_json_tree *system);

#endif
