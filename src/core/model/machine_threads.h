/*
 * host-threads.json: every thread of every process on the machine.
 *
 * It is one object whose last member is the array `threads`. 10,000 threads make some 20 MB, so it
 * is printed in parts: a header, each thread, and the tail.
 */
#ifndef BP_MODEL_MACHINE_THREADS_H
#define BP_MODEL_MACHINE_THREADS_H

#include <bugpack/error.h>

#include "base/buffer.h"
#include "json/json.h"
#include "model/thread_heap.h"
#include "platform/linux/proc_list.h"
#include "platform/machine_threads.h"

/* A process as the first pass saw it. */
typedef struct bp_machine_process {
    uint64_t tgid;
    char name[64]; /* any bytes */
    bool is_kernel_thread;
    bool is_self;
    char *command_line; /* arguments, each ended by NUL; owned, NULL: none or not known */
    size_t command_line_bytes;
    bool is_command_line_cut;
    bp_proc_list threads; /* ascending; owned */
    bool is_heap_measured;
    bp_heap_failure heap_failure; /* why not; NONE also where nobody looked */
    bp_thread_heap *heap;         /* ascending by tid; owned, NULL without */
    size_t heap_count;
} bp_machine_process;

void bp_machine_process_release(bp_machine_process *process);

/* Failures with one errno that means neither an end nor a refusal. */
typedef struct bp_machine_error {
    int system_errno;
    uint64_t process_count, thread_count; /* of which nothing is known */
    uint64_t file_count;                  /* of others */
} bp_machine_error;

/* Further kinds of errno are counted with the last. */
#define BP_MACHINE_ERROR_MAX 8

/* The results of a capture. Counts are of threads unless a name says otherwise. */
typedef struct bp_machine_summary {
    uint64_t captured_wall_ns; /* when it began */
    uint64_t duration_ns;
    uint64_t boottime_ns; /* since boot, when it began */
    char boot_id[37];     /* of the kernel; "" if unknown */
    uint64_t ticks_per_sec;
    uint64_t window_ns; /* over which the use of threads was measured; 0: it was not */
    bool is_root;       /* who captures: what is refused cannot be had by another user */
    uint64_t self_tgid; /* 0 when we are not among them */
    uint64_t process_count, vanished_process_count, denied_process_count;
    uint64_t thread_count, vanished_thread_count, kernel_thread_count;
    bool is_cut;    /* ended before all threads were read */
    bool is_hidden; /* /proc does not list the processes of other users */
    uint64_t unread[BP_MACHINE_GROUP_COUNT][BP_MACHINE_CAUSE_COUNT]; /* always 0 for the heap */
    bp_machine_error errors[BP_MACHINE_ERROR_MAX];
    size_t error_count;
    bool is_heap_probed; /* else what follows is 0 */
    /* Processes by the result of the probe of their jemalloc; NONE is success. */
    uint64_t heap_processes[BP_HEAP_FAILURE_COUNT];
    uint64_t heap_absent_count; /* other processes, without anything to measure */
    uint64_t heap_thread_count; /* threads whose counters were read */
    uint64_t heap_unread_count; /* other threads of the measured processes */
    char heap_reasons[BP_HEAP_FAILURE_COUNT][256]; /* a sentence per failure */
} bp_machine_summary;

/* The entry for this errno, for the caller to count in. */
bp_machine_error *bp_machine_summary_error(bp_machine_summary *summary, int system_errno);

/* The figures of a control group, and `pressure`, of it or of the machine. A group of which nothing
 * is known is left out. */
void bp_machine_add_figures(bp_json *json, const bp_machine_cgroup *cgroup);
void bp_machine_add_pressure(bp_json *json, const bp_pressure pressure[BP_PRESSURE_COUNT]);

/*
 * True if nothing that every process shows to somebody was refused or failed. Heaps do not count:
 * they are another process's memory. Neither does what this kernel does not have or count.
 */
bool bp_machine_summary_is_complete(const bp_machine_summary *summary);

/* True if something is missing that could have been there: it failed, or was not tried. What the
 * kernel refuses to this user is no such loss. */
bool bp_machine_summary_has_loss(const bp_machine_summary *summary);

/* Describes an incomplete capture in one line: what it lacks, in numbers, and what to do about it.
 */
void bp_machine_summary_explain(const bp_machine_summary *summary, char *out, size_t out_bytes);

/* The part of the document before the first thread. */
typedef struct bp_machine_header {
    const bp_machine_summary *summary;
    const bp_machine_process *processes;
    size_t process_count;
    const bp_machine_cgroup *cgroups;
    size_t cgroup_count;
    bp_pressure pressure[BP_PRESSURE_COUNT];
} bp_machine_header;

/* Appends it; processes without threads, which have ended, are left out. */
bugpack_status bp_machine_print_header(const bp_machine_header *header, bp_buffer *out,
                                       bugpack_error *error);

/* Appends one thread, after a comma, which the writer of the first thread drops. Failures stick in
 * the buffer. */
void bp_machine_print_thread(const bp_machine_thread *thread, bp_buffer *out);

/* The end of the document: after the last thread, and after the header when there is none. */
extern const char bp_machine_tail[], bp_machine_tail_empty[];

/* Appends "0-3,8". "" for the empty list. */
void bp_cpu_list_print(const bp_cpu_list *list, bp_buffer *out);

#endif
