/*
 * What a report says at a glance: what `bugpack show` prints, what the page draws and what an index
 * holds. Everything in it may be hostile: texts are valid UTF-8 at most, and are to be escaped
 * where they are shown.
 */
#ifndef BP_INSPECT_SUMMARY_H
#define BP_INSPECT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/log.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "inspect/evidence.h"
#include "inspect/report_file.h"
#include "model/frame_text.h"
#include "model/stacks.h"
#include "json/tree.h"

enum {
    BP_SUMMARY_THREAD_MAX = 12,
    BP_SUMMARY_RECORD_MAX = 12,
    BP_SUMMARY_CHANNEL_MAX = 64,
    BP_SUMMARY_SAMPLE_MAX = 1 << 16, /* eighteen hours of the metrics history */
    BP_SUMMARY_DEADLOCKED_MAX = 16,
    BP_SUMMARY_TAIL_BYTES = 64 << 10, /* of a text log */
    BP_SUMMARY_PROCESS_MAX = 64,
    BP_SUMMARY_NAME_MAX = 1 << 17, /* of threads, all different */
    BP_SUMMARY_LEVELS = BUGPACK_LEVEL_FATAL + 1
};

/* One of the busiest threads, and where it stands. "" for what is not known. */
typedef struct bp_summary_thread {
    uint64_t tid;
    double cpu_percent; /* over the window, also of one that was born in it */
    double cpu_ms;      /* negative: not known */
    bool is_born;       /* in the window */
    char name[64], state[24], syscall[32];
    bool waits_for_thread;
    char waits_for[128];              /* "5188 (mutex)", or "pipe 3 of cat (4711)" */
    char frames[BP_FRAME_LIST_BYTES]; /* "poll < wait_for_frame < main", innermost first */
} bp_summary_thread;

/* What stands in front of its state: that it was born in the window, or "". Static. */
const char *bp_summary_born_words(const bp_summary_thread *thread);

/* What stands in front of `waits_for`; "" where that is not known. Static. */
const char *bp_summary_wait_words(const bp_summary_thread *thread);

/* All threads of one name. */
typedef struct bp_summary_name {
    uint64_t count;
    double cpu_percent; /* their sum */
    double born_cpu_ms; /* of those that were born in the window; then part of the sum */
    char name[64];
} bp_summary_name;

typedef struct bp_summary_names {
    bp_summary_name *rows;
    size_t count, capacity;
    uint32_t *slots; /* places in `rows`, from 1, by hash; 0 is free */
    size_t slot_count;
    uint64_t seed;
} bp_summary_names;

/* What is drawn of a sample: percent, and MiB; negative for what is not known. */
double bp_summary_sample_cpu(const bp_sample *sample);
double bp_summary_sample_memory(const bp_sample *sample);

typedef struct bp_summary_record {
    uint64_t wall_ns; /* 0: not known */
    int level;
    char channel[64], message[512];
} bp_summary_record;

typedef struct bp_summary_channel {
    char name[64];
    uint64_t messages[2], bytes[2];       /* sent, received */
    uint64_t recorded_count;              /* with those that are not in the report; 0: not known */
    uint64_t first_wall_ns, last_wall_ns; /* the earliest and the latest; 0: not known */
} bp_summary_channel;

/* Whether messages of it are not in the report, so that its counts are lower bounds. */
bool bp_summary_channel_is_partial(const bp_summary_channel *channel);

/* --- the whole machine, by host-threads.json and system.json ------------------------------- */

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

/* --- the report --------------------------------------------------------------------------- */

/* What a process uses, by runtime-metrics.json. */
typedef struct bp_summary_use {
    bool has_metrics, has_rss, has_uptime;
    double cpu_percent, uptime_secs; /* over the window; of the process */
    uint64_t rss_kb, thread_count;
} bp_summary_use;

/* One of the further processes of a report about several. */
typedef struct bp_summary_process {
    char folder[96]; /* of its entries, with a slash at the end */
    uint64_t pid;    /* 0: not known */
    char name[64];
    bp_summary_use use;
} bp_summary_process;

/* Of a text of metadata.json or manifest.json: owned by the report. */
typedef struct bp_summary {
    const char *path;                        /* borrowed */
    bp_report_file *report;                  /* borrowed */
    const char *folder;                      /* of the entries that are read; borrowed */
    bp_frame_finder finder;                  /* of what frames lack */
    const bp_json_tree *metadata, *manifest; /* NULL where there is none */
    uint64_t triggered_wall_ns;              /* 0: not known */

    bp_findings own_findings, *findings; /* most severe first; of the report */

    bp_summary_use use;
    double window_ms;
    bp_summary_thread threads[BP_SUMMARY_THREAD_MAX]; /* busiest first */
    size_t listed_count;
    bp_summary_names names; /* of all threads that have one; busiest first */
    bool has_no_deadlock; /* by threads.json, and that of each further process: nobody can be in one
                           */
    bool has_deadlock;    /* of any process of the report */
    char deadlocked[BP_SUMMARY_DEADLOCKED_MAX][64]; /* names of threads in deadlocks, sorted */
    size_t deadlocked_count;

    bp_sample *samples; /* oldest first */
    size_t sample_count, sample_capacity;

    /* Of process.json; the limit of descriptors is 0 where it is not known. */
    bool has_open_files;
    uint64_t pid; /* 0: not known */
    char process_name[64];
    uint64_t open_files, open_files_limit;

    char allocator[32];
    bool has_heap[2];
    uint64_t heap_bytes[2]; /* allocated, resident */

    uint64_t level_counts[BP_SUMMARY_LEVELS];
    bp_summary_record records[BP_SUMMARY_RECORD_MAX]; /* the newest warnings and errors, a ring */
    uint64_t record_count;                            /* of all; the newest is at count - 1 */
    bp_buffer log_tail;                               /* the end of the first text log */
    char log_name[64];

    bp_summary_channel channels[BP_SUMMARY_CHANNEL_MAX];
    size_t channel_count;
    uint64_t other_message_count; /* of channels beyond the maximum */

    bp_summary_process processes[BP_SUMMARY_PROCESS_MAX];
    size_t process_count;
    uint64_t other_process_count; /* beyond the maximum */

    bp_machine machine;
    bp_evidence evidence;
    bool wants_output; /* of the process, as it failed */

    uint64_t left_bytes; /* what may still be read */
} bp_summary;

/*
 * Reads what a report holds, entry by entry, as far as it is there and well-formed: what is not
 * becomes a finding; with `is_brief` its documents alone, without stacks, history, log and traffic.
 * `path`, `report`, `folder`, `finder` and `left_bytes` of the summary are set, and the rest is
 * zero. Memory: under 64 MiB, whatever the report declares. NO_MEMORY. What is set is borrowed
 * until the summary is released, by the caller whatever is returned.
 */
bugpack_status bp_summary_read(bp_summary *summary, bool is_brief, bugpack_error *error);
void bp_summary_release(bp_summary *summary);

/*
 * Opens the report at `path` as bp_report_file_open_any does, reads it and judges it; with
 * `is_brief` its documents alone. The summary owns the report and `finder`, also where this fails,
 * and is closed by the caller.
 */
bugpack_status bp_summary_open(const char *path, uint64_t max_bytes, bool is_brief,
                               bp_frame_finder finder, bp_summary **ret_summary,
                               bugpack_error *error);
/* NULL is fine. */
void bp_summary_close(bp_summary *summary);

/* Whether it was recovered from a process that no handler saw end: its trigger is the last time it
 * was known to run. */
bool bp_summary_has_died_unseen(const bp_summary *summary);

/* What the report is about, in words: its kind, or the exit status of a process that did not crash.
 */
#define BP_SUMMARY_KIND_BYTES 48
void bp_summary_kind(const bp_summary *summary, char out[BP_SUMMARY_KIND_BYTES]);

/* The record of this age, 0 the newest, or NULL. */
const bp_summary_record *bp_summary_newest(const bp_summary *summary, size_t age);

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

/* Adds a thread of runtime-metrics.json to those of its name. NO_MEMORY, and LIMIT for more than
 * BP_SUMMARY_NAME_MAX names. */
bugpack_status bp_summary_add_name(bp_summary_names *names, const bp_json_tree *thread,
                                   bugpack_error *error);
/* Once all are there, and how long the window was is known. */
void bp_summary_sort_names(bp_summary_names *names, double window_ms);
void bp_summary_release_names(bp_summary_names *names);

/* Names the threads in deadlocks, and finds out whether there can be any. */
void bp_summary_end_threads(bp_summary *summary);

/* Adds those of a further process. */
void bp_summary_join_deadlocked(bp_summary *summary, const bp_summary *of_process);

/* The summary as JSON (docs/schema/show.schema.json). NO_MEMORY. */
bugpack_status bp_summary_print(const bp_summary *summary, bp_buffer *out, bugpack_error *error);

/*
 * Appends the line of a report: a JSON object without nested ones (docs/schema/index.schema.json),
 * and a newline. Reads only its small documents, so that a line takes less than a millisecond.
 * Errors of bp_report_file_open_any; NO_MEMORY.
 */
bugpack_status bp_index_line(const char *path, uint64_t byte_count, bp_buffer *out,
                             bugpack_error *error);

#endif
