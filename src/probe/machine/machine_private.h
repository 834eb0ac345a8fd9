/*
 * Reading one process, thread or control group for a capture of the whole machine, comparing the
 * two ends of its window, and the file systems of a process. Linux only.
 */
#ifndef BP_MACHINE_MACHINE_PRIVATE_H
#define BP_MACHINE_MACHINE_PRIVATE_H

#include "machine/machine_capture.h"
#include "model/system.h"

/* All cgroups that have threads. Starts zeroed. */
typedef struct bp_machine_cgroups {
    void *root; /* of tsearch(3) */
    struct bp_machine_cgroup_node *first;
    size_t count;
} bp_machine_cgroups;

void bp_machine_cgroups_release(bp_machine_cgroups *cgroups);

/* Counts one thread into the cgroup of this path. Returns its text, valid as long as the cgroups;
 * NULL, with errno, without memory or when there are too many. */
const char *bp_machine_cgroups_count(bp_machine_cgroups *cgroups, const char *path,
                                     size_t path_bytes);

/*
 * The cgroups sorted by path, with their present figures from `cgroup_fd` (-1: none). The caller
 * frees the array, but not its paths. False without memory. Files that are there and cannot be read
 * are counted in the summary, here and below.
 */
bool bp_machine_cgroups_read(const bp_machine_cgroups *cgroups, int cgroup_fd,
                             bp_machine_cgroup **ret_list, bp_machine_summary *summary);

/*
 * Fills the `cgroups` of a system: from each group that a process is in up to the root, as far as
 * anything is known of it. `lines` is /proc's `cgroup` of the process. False without memory.
 */
bool bp_machine_cgroups_of_process(const char *lines, size_t lines_bytes, bp_system *system,
                                   bp_machine_summary *summary);

/* Gives the system the groups of an earlier reading, with the counts that each has now. False
 * without memory. */
bool bp_machine_cgroups_again(const bp_system *before, bp_system *system,
                              bp_machine_summary *summary);

/* The pressure on the machine, from the directory `proc_fd`/pressure. */
void bp_machine_read_pressure(int proc_fd, bp_pressure pressure[BP_PRESSURE_COUNT],
                              bp_machine_summary *summary);

/*
 * Fills the `filesystems` of a system: those of the directories of the process below `process_fd`,
 * which is /proc/<pid>, and those of files that it has open for writing. `root_fd` is its root; -1:
 * its directories are not ours to see. What cannot be read is left out. Blocks as long as a file
 * system does not answer. Any thread.
 */
void bp_filesystems_read(int process_fd, int root_fd, bp_system *system);

/* The use of one process, or one thread, so far. */
typedef struct bp_machine_used_process {
    uint64_t tgid, start_ticks;
    uint64_t read_ns;             /* monotonic */
    uint64_t cpu_ns, children_ns; /* in ticks; of children, those that were waited for */
    size_t first_thread, thread_count;
} bp_machine_used_process;

typedef struct bp_machine_used_thread {
    uint64_t tid, run_ns;
} bp_machine_used_thread;

/* One end of a window: all processes, and all threads of each, ascending. */
typedef struct bp_machine_usage {
    uint64_t taken_ns, boottime_ns, tick_ns;
    bp_machine_used_process *processes;
    bp_machine_used_thread *threads;
    size_t process_count, process_capacity, thread_count, thread_capacity;
} bp_machine_usage;

/* Fills the window of a thread that was read after the second one. */
void bp_machine_usage_compare(const bp_machine_usage *before, const bp_machine_usage *after,
                              bp_machine_thread *thread);

typedef struct bp_machine_reader {
    int proc_fd;      /* borrowed */
    bool has_our_ids; /* those that system calls take */
    uint64_t ticks_per_sec;
    bp_machine_cgroups *cgroups;
    bp_heap_prober *prober;
    uint64_t self_tgid;
    char *text; /* one file, of BP_THREAD_TEXT_BYTES */
    bp_machine_summary *summary;
} bp_machine_reader;

/* The first pass: the name, the arguments, the threads and the heap of process->tgid. 0, or the
 * errno: what was read before is there. */
int bp_machine_read_process(bp_machine_reader *reader, bp_machine_process *process);

/* The second pass. 0 or an errno. */
int bp_machine_read_thread(bp_machine_reader *reader, const bp_machine_process *process,
                           uint64_t tid, bp_machine_thread *ret_thread);

#endif
