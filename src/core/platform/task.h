/* A process, or a process and its descendants, whose counters are sampled. */
#ifndef BP_PLATFORM_TASK_H
#define BP_PLATFORM_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <bugpack/error.h>

/* The counters of one thread. */
typedef struct bp_thread_counters {
    uint64_t tid;
    pid_t pid; /* its process; Linux only, else 0 */
    /* The thread's start in the system's own unit, constant for its lifetime: with the tid it
     * identifies a thread. 0 where it is not known. */
    uint64_t birth;
    uint64_t cpu;         /* CPU time so far, user and system, in units of cpu_unit_ns */
    bool has_system_cpu;  /* of other processes on Linux, whose threads have it in the same file */
    uint64_t system_cpu;  /* the part of `cpu` in the kernel */
    uint64_t page_faults; /* with system_cpu */
    bool is_awake;        /* the same: it runs, or is ready to */
    bool has_switches;    /* after bp_task_read_switches, as all below */
    uint64_t voluntary_switches, involuntary_switches;
    bool has_run_delay, has_io;
    uint64_t run_delay_ns; /* how long it was ready to run, and did not, since it began */
    uint64_t read_chars, written_chars, write_calls; /* by calls as read(2) and write(2) */
    char name[64]; /* any bytes, NUL-terminated; "" when it has none or none was asked for */
} bp_thread_counters;

/* A process at one instant. Counters keep the system's own unit, so that nothing is rounded twice.
 */
typedef struct bp_task_snapshot {
    uint64_t taken_ns;      /* bp_clock_monotonic_ns when process_cpu was read */
    uint64_t boottime_ns;   /* the same instant on the clock of births; 0 where not known */
    uint64_t birth_unit_ns; /* of births on that clock */
    uint64_t cpu_unit_ns;   /* 1: nanoseconds, 1000: microseconds, 10000000: ticks of 10 ms */
    uint64_t process_cpu;   /* user and system time of all threads, ended ones too */
    uint64_t waited_cpu;    /* that of ended children that were waited for; 0 where not known */
    uint64_t first_cpu;     /* of both, what the first process has of its own; Linux only */
    uint64_t extra_ns;      /* used beyond process_cpu, where that is known more exactly */
    bool has_memory;        /* a kernel thread or a zombie has none */
    uint64_t rss_bytes;
    uint64_t vm_size_bytes;
    bool has_uptime;
    uint64_t uptime_ns;          /* since the process began, suspended time included */
    bp_thread_counters *threads; /* in the order that the system gave them */
    size_t thread_count;
    size_t vanished_count; /* threads that were listed and gone when they were read */
    size_t unread_count;   /* descendants that run and could not be read, at least */
    uint64_t image;        /* of the first process, as in bp_task_program; 0: not known */
} bp_task_snapshot;

void bp_task_snapshot_release(bp_task_snapshot *snapshot);

typedef struct bp_task bp_task;

/*
 * Opens a process; 0 or our own pid is our own, which is cheaper to read. Another process is
 * identified by a descriptor, where there is one, and its start time: every later call is about the
 * same process or fails with NO_PROCESS. Errors: NO_PROCESS, DENIED, NO_MEMORY, IO, UNSUPPORTED (no
 * sampler on this system).
 *
 * With its descendants, snapshots have the threads of all, the sums of their memory (a shared page
 * counts twice), and in process_cpu the time that all have used, ended ones included. A descendant
 * that was seen once belongs to the task even after its parent ends; one that we may not or cannot
 * read is left out, and counted. Facts are of the first process, and the task ends with it.
 */
bugpack_status bp_task_open(pid_t pid, bool with_descendants, bp_task **ret_task,
                            bugpack_error *error);
void bp_task_close(bp_task *task);

/*
 * Opens the same process once more, for a thread that takes snapshots while others do; closed like
 * any other. Costs descriptors of its own. Errors: NO_PROCESS when it has ended, NO_MEMORY, IO.
 */
bugpack_status bp_task_clone(const bp_task *task, bp_task **ret_clone, bugpack_error *error);

pid_t bp_task_pid(const bp_task *task);

/* The name of the process when it was opened: any bytes, NUL-terminated, "" when unknown. */
void bp_task_name(const bp_task *task, char *out, size_t out_bytes);

/* The program of a process. */
typedef struct bp_task_program {
    char name[64];  /* any bytes */
    uint64_t image; /* another one after each execve(2); 0 where it is not known */
} bp_task_program;

/* The program that it executes now, or did when it ended, while nobody has waited for it. False
 * where that is not known; Linux only. As a reading of facts. */
bool bp_task_program_now(bp_task *task, bp_task_program *ret_program);

/* The totals of a process. */
typedef struct bp_task_totals {
    uint64_t taken_ns; /* monotonic */
    uint64_t cpu_ns;   /* user and system time of all threads, ended ones too */
    bool has_memory;   /* a kernel thread or a zombie has none */
    uint64_t rss_bytes, vm_size_bytes, thread_count;
    char state; /* of its first thread, as in proc(5) */
} bp_task_totals;

/* Reads them without a look at each thread, which costs as much for many as for one; of a tree, the
 * first process. Errors: NO_PROCESS when it has ended, IO, UNSUPPORTED (on other systems than
 * Linux). As a reading of facts. */
bugpack_status bp_task_read_totals(bp_task *task, bp_task_totals *ret_totals, bugpack_error *error);

/* The number of its open descriptors; of a tree, the first process. Errors: NO_PROCESS, DENIED,
 * NO_MEMORY, IO, UNSUPPORTED. As a reading of facts. */
bugpack_status bp_task_count_files(bp_task *task, uint64_t *ret_count, bugpack_error *error);

/* How long ago the process began, suspended time included; also after its end. False where it is
 * not known. Not while the same task takes a snapshot. */
bool bp_task_uptime(bp_task *task, uint64_t *ret_uptime_ns);

/*
 * Reads all counters once. Names cost extra and are read only when `with_names`. A task remembers
 * those of our own threads, and reads only those of new ones. One thread at a time per task;
 * another may read its facts meanwhile.
 */
bugpack_status bp_task_snapshot_take(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                     bugpack_error *error);

/*
 * The same, and where the process has ended, what is left of it while its parent has not waited for
 * it: then the status is OK, and `error` (not NULL) says that it has ended. Linux only; elsewhere
 * an ended process is NO_PROCESS.
 */
bugpack_status bp_task_snapshot_take_last(bp_task *task, bool with_names,
                                          bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* Adds how often each thread was switched, where that is known: of another process on Linux. Costs
 * more than the snapshot. Of threads that are awake, which are few, also their run delay, and their
 * input and output as far as we may see them. Errors as bp_task_snapshot_take. */
bugpack_status bp_task_read_switches(const bp_task *task, bp_task_snapshot *snapshot,
                                     bugpack_error *error);

/* Lets the next snapshot with names read a tenth of the remembered names again, in turn. */
void bp_task_reread_names(bp_task *task);

#endif
