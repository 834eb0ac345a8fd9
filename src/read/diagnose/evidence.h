/*
 * The evidence in the entries of one process, for the diagnoses: documents as trees, and one table
 * of its threads from runtime-metrics.json, threads.json and stacks.json. Everything in it may be
 * hostile.
 */
#ifndef BP_DIAGNOSE_EVIDENCE_H
#define BP_DIAGNOSE_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/clock.h"
#include "diagnose/findings.h"
#include "entries/call_tree.h"
#include "entries/report_file.h"
#include "json/tree.h"
#include "model/stacks.h"

enum {
    BP_EVIDENCE_THREAD_MAX = 1 << 17,
    BP_EVIDENCE_BUSIEST_MAX = 12,
    BP_EVIDENCE_STACK_MAX = 1024,
    BP_EVIDENCE_LINE_MAX = 2048, /* more than a trace has: Java's of 1,024 functions, and a cause */
    BP_EVIDENCE_LINE_BYTES = 320
};

/* Errors and triggers count as recent in this time before the trigger; errors also in the window
 * behind it. */
#define BP_EVIDENCE_RECENT_SECS 10
#define BP_EVIDENCE_RECENT_NS (BP_EVIDENCE_RECENT_SECS * BP_NS_PER_SEC)

/* The clocks of the CPU count in steps of up to 10 ms: over less a rate says nothing. */
enum { BP_EVIDENCE_RATE_WINDOW_MS = 100 };

/* In less than the first a program that works waits for a lock, and in less than the second for an
 * answer that is merely slow. */
enum { BP_EVIDENCE_WAIT_WINDOW_MS = 100, BP_EVIDENCE_ANSWER_WINDOW_MS = 1000 };

/* A thread. "" and negative numbers for what is not known. */
typedef struct bp_thread {
    uint64_t tid;
    /* From runtime-metrics.json; the percent is over the window, even if the thread began in it. */
    bool is_measured, is_born, is_own; /* the last: bugpack's */
    bool is_waited_for;                /* another one waits for a lock that it holds */
    uint32_t place;                    /* in runtime-metrics.json, from 1 */
    uint32_t rank;                     /* among the busiest, from 1; 0: it is none of them */
    double cpu_percent, cpu_ms, system_ms, age_ms, voluntary_switches, involuntary_switches,
        run_delay_ms, page_faults, read_chars, written_chars, write_calls;
    char name[64];
    /* From threads.json; `waits_for_tid` is 0 where it waits for no thread. */
    bool is_listed;
    char state[24], syscall[32], waits_for_kind[16];
    uint64_t waits_for_tid;
    /* Its elements of threads.json and stacks.json; NULL for none, and where so many threads have
     * one that they would take too much memory: what is counted is not to be counted by them. */
    bp_json_tree *row, *stack;
} bp_thread;

/* The object of a wait: "pipe 3 of cat", 4711, " and 2 more". */
typedef struct bp_wait_text {
    char text[96];
    uint64_t pid; /* 0: none that is known */
    char others[32];
} bp_wait_text;

/* The elements of a list in the order of the document, as far as they take little memory. */
typedef struct bp_rows {
    bp_json_tree **rows;
    size_t count, capacity;
    uint64_t total_count; /* with those that were not kept */
} bp_rows;

/* A sample of the metrics history. */
typedef struct bp_sample {
    uint64_t wall_ns;
    uint32_t cpu_percent_100; /* hundredths of a percent */
    bool has_rss;
    uint64_t rss_kb, own_kb;                       /* what is bugpack's of it; 0: not known */
    uint64_t vm_size_kb, thread_count, file_count; /* 0: not known */
} bp_sample;

/* Records of a log in the last seconds before the trigger, and the one that is probably most of
 * them (Boyer and Moore). */
typedef struct bp_log_rate {
    uint64_t first_wall_ns, last_wall_ns, count;
    uint64_t votes, same_count; /* the second: at least so many are this one */
    char line[BP_EVIDENCE_LINE_BYTES];
} bp_log_rate;

/* Adds one; of a warning or an error numbers make no difference. */
void bp_log_rate_add(bp_log_rate *rate, uint64_t wall_ns, bool is_warning, const char *line);

/* All pointers but those of its own lists and trees are borrowed. */
typedef struct bp_evidence {
    bp_findings *findings;
    bp_diagnosis running; /* the one whose function runs */

    bp_report_file *report;
    const char
        *folder;      /* of the entries of the process, with a slash at its end; "" for the first */
    bool is_of_group; /* the report is about several processes */
    const bp_frame_finder *finder;
    const bp_json_tree *metadata, *manifest; /* of the report; NULL where there is none */
    uint64_t triggered_wall_ns;              /* 0: not known */
    uint64_t ended_wall_ns; /* the end of the window, or the trigger where that is later */

    /* Documents without the lists that are below; NULL for one that is not there or not whole. */
    bp_json_tree *metrics, *process, *waits /* threads.json */, *files_rest, *heap, *thread_heap,
        *disconnect, *hang, *crash, *system;
    bp_rows deadlocks, files;
    size_t left_bytes; /* of memory for all trees */
    bool lacks_memory; /* what is here is not whole */

    bp_thread *threads; /* by tid */
    size_t thread_count, thread_capacity, sorted_count;
    bp_thread *busiest[BP_EVIDENCE_BUSIEST_MAX]; /* first; of those that were measured */
    size_t busiest_count;
    uint64_t stacks[BP_EVIDENCE_STACK_MAX]; /* ids of the first threads in stacks.json */
    size_t stack_count;
    uint64_t measured_count; /* threads in runtime-metrics.json */
    double window_ms;        /* 0: not known */
    const char *common_name; /* that most of them have; NULL: none */
    uint64_t common_count;

    const bp_call_tree *profile; /* NULL until it was read */

    /* Of the whole report, and empty for a further process. */
    const bp_sample *samples; /* oldest first */
    size_t sample_count;
    bp_log_rate log_rate;
    uint64_t recent_error_count;             /* in logs.jsonl */
    char recent_error[512];                  /* the newest */
    char (*output)[BP_EVIDENCE_LINE_BYTES];  /* the last lines of a command that failed, a ring */
    uint64_t output_count;                   /* of all; the newest is at count - 1 */
    bool is_output_stdout;                   /* there is no other */
    char (*results)[BP_EVIDENCE_LINE_BYTES]; /* standard output beside another, likewise */
    uint64_t result_count;
} bp_evidence;

/* Adds a finding of the diagnosis whose function runs, with the arguments of its pattern, or
 * BP_END. The second: about another entry of the process than that of the row. */
#define bp_find(evidence, pattern, ...)                                                            \
    bp_find_in((evidence), bp_diagnoses[(evidence)->running].entry, (pattern), __VA_ARGS__)
#define bp_find_in(evidence, entry, pattern, ...)                                                  \
    bp_find_as((evidence), (evidence)->running, (entry), (pattern), BP_ARGUMENTS(__VA_ARGS__))
void bp_find_as(bp_evidence *evidence, bp_diagnosis diagnosis, const char *entry,
                const char *pattern, const bp_argument *arguments);

/* Behind a sentence about the first thread of several, for the count of the others. */
#define AND_MORE_THREADS "{[, and {} more thread{|s}]}"

/* Arguments: a thread, a process { pid, name, state }, and what a thread waits for. */
bp_argument bp_thread_argument(const bp_thread *thread);
bp_argument bp_process_argument(const bp_json_tree *process);
bp_argument bp_wait_argument(const bp_wait_text *wait);

/* True for a zombie or a dead thread; and for one that did not run once in the window. The third:
 * and where the window was long enough to say that it waits. */
bool bp_thread_has_ended(const bp_thread *thread);
bool bp_thread_is_idle(const bp_thread *thread);
bool bp_thread_waited(const bp_evidence *evidence, const bp_thread *thread);

/* The object of its wait in words: "5188 (mutex)", or "pipe 3 of cat (4711)"; "" where that is not
 * known. The second: as one text. */
void bp_thread_find_wait(const bp_thread *thread, bp_wait_text *ret_wait);
void bp_thread_print_wait(const bp_thread *thread, char *out, size_t out_bytes);

/* The argument of its system call at a place, as text; "" where that is not known. */
const char *bp_thread_call_argument(const bp_thread *thread, unsigned place);

/* True if it is in a call that only time ends, as sleep, or poll without descriptors. */
bool bp_thread_only_sleeps(const bp_thread *thread);

/* The signal of the timer that keeps a thread busy: most of what it costs is that the kernel begins
 * the handler again and again. NULL for none. diagnose_rates.c. */
const char *bp_thread_busy_timer(const bp_evidence *evidence, const bp_thread *thread);

/* The function of the program in which a thread is, as it has one of its own; "" where that is not
 * known. */
void bp_thread_print_function(const bp_evidence *evidence, const bp_thread *thread,
                              char out[BP_FRAME_NAME_BYTES]);

/* "; 912 of 940 are of the kind "socket", 900 of these of 10.0.0.1:5432": what most of the open
 * files are; "" where they differ, or none is known. */
enum { BP_OPEN_FILES_BYTES = 192 };
void bp_open_files_describe(const bp_evidence *evidence, char out[BP_OPEN_FILES_BYTES]);

/* True for the time of an error that is recent; and how long the window went on behind the trigger.
 */
bool bp_evidence_is_recent(const bp_evidence *evidence, uint64_t wall_ns);
bp_argument bp_evidence_rest(const bp_evidence *evidence);

/* True if the executable is an interpreter of Python by its name. */
bool bp_evidence_is_of_python(const bp_evidence *evidence);

/* True if the process had loaded an object whose path has this text, as "/libc.so". */
bool bp_evidence_has_object(const bp_evidence *evidence, const char *text);

/* The descriptor of that number in files.json; NULL where it is not listed. The second: of an
 * element of "polled"; NULL also where the number is of another file now. */
const bp_json_tree *bp_evidence_file(const bp_evidence *evidence, uint64_t fd);
const bp_json_tree *bp_evidence_polled(const bp_evidence *evidence, const bp_json_tree *polled);

/* True if the process itself has all other ends of a pipe or socket. */
bool bp_evidence_is_own_end(const bp_evidence *evidence, const bp_json_tree *file);

/* True if files.json is there and lists every descriptor. */
static inline bool bp_evidence_has_all_files(const bp_evidence *evidence) {
    return evidence->files.count > 0 && evidence->files.count >= evidence->files.total_count;
}

/* True if a descriptor of this kind, as "socket", is in files.json. */
bool bp_evidence_has_open(const bp_evidence *evidence, const char *kind);

/* Sessions of PostgreSQL that wait for each other, over all processes of a report. Each is added
 * while its process is read; what they say together is found behind the last, with evidence that
 * has a report and findings alone. diagnose_runtime.c. */
enum { BP_DATABASE_SESSION_MAX = 64 };
typedef enum bp_database_state {
    BP_DATABASE_WAITS,
    BP_DATABASE_IDLE, /* in a transaction */
    BP_DATABASE_WORKS
} bp_database_state;
typedef struct bp_database_session {
    uint64_t pid;
    bp_database_state state;
    double window_ms;
    char database[64], activity[40], folder[96];
} bp_database_session;

typedef struct bp_database {
    bp_database_session sessions[BP_DATABASE_SESSION_MAX];
    size_t count;
    bool has_more;
} bp_database;

void bp_database_add(bp_database *database, const bp_evidence *evidence);
void bp_database_find(const bp_database *database, bp_evidence *evidence);

/* The limit of that name in process.json, as "Max open files", "soft" or "hard"; 0: none, or not
 * known. */
uint64_t bp_limit(const bp_json_tree *process, const char *name, const char *kind);

/* The signal that ended the process: "SIGSEGV", or "signal 36", as a realtime signal has no name.
 * False with "" for none. */
enum { BP_SIGNAL_BYTES = 41 };
bool bp_exit_signal(const bp_json_tree *metadata, char out[BP_SIGNAL_BYTES]);

/* The thread of that id, or NULL; once the list is sorted. */
bp_thread *bp_evidence_thread(const bp_evidence *evidence, uint64_t tid);

/* Takers whose context is the evidence. First those of the threads of runtime-metrics.json, then of
 * threads.json and of stacks.json, whose trees they may take over, and of other lists. They always
 * return OK; of more threads than BP_EVIDENCE_THREAD_MAX the rest is passed over. */
bp_json_tree_taker bp_evidence_take_measured, bp_evidence_take_listed, bp_evidence_take_stack,
    bp_evidence_take_deadlock, bp_evidence_take_file;
/* After the last of each list. */
void bp_evidence_end_measured(bp_evidence *evidence);
void bp_evidence_end_listed(bp_evidence *evidence);

/* Adds a line of the output of a process that failed, and changes it. */
void bp_evidence_output(bp_evidence *evidence, const char *channel, char *text);

void bp_evidence_release(bp_evidence *evidence);

#endif
