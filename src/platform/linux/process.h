/*
 * A process as the Linux files hold it: opened once, known to be the same one ever after.
 */
#ifndef BP_PLATFORM_LINUX_PROCESS_H
#define BP_PLATFORM_LINUX_PROCESS_H

#include "platform/linux/proc_root.h"
#include "platform/linux/proc_text.h"
#include "platform/process_tree.h"

/* Descriptors stay open, so that a snapshot needs no new one: a host that has run out of them is
 * one that a report is about. */
typedef struct bp_process {
    pid_t pid;
    char name[64]; /* when it was opened */
    /* Our own, and /proc counts threads as we do: their clocks can be asked without a file. */
    bool is_own;
    bool was_zombie;   /* when it was opened; then being one is not an end */
    bp_proc_root root; /* its fd is borrowed, and used by bp_process_open only */
    int directory_fd;  /* /proc/<pid>, O_PATH */
    int pidfd;         /* -1 where there are none */
    int threads_fd;    /* /proc/<pid>/task */
    int statm_fd;
    uint64_t start_ticks;
} bp_process;

/* Opens /proc for bp_process_open, and reads the clock tick and the page size. The caller closes
 * `ret_root->fd`. Errors: UNSUPPORTED when /proc is not mounted, IO. */
bugpack_status bp_proc_root_open(bp_proc_root *ret_root, bugpack_error *error);

/*
 * Opens process `pid` below `root`, which is copied; 0 is our own, by the link "self", which is
 * right also where /proc numbers processes otherwise. `process` need not be initialised, and is
 * closed by the caller only after success. Errors as bp_task_open.
 */
bugpack_status bp_process_open(const bp_proc_root *root, pid_t pid, bp_process *process,
                               bugpack_error *error);

/* Opens the same process once more. Errors: NO_PROCESS when it has ended, NO_MEMORY, IO. */
bugpack_status bp_process_clone(const bp_process *process, bp_process *clone, bugpack_error *error);

void bp_process_close(bp_process *process);

/* "process 7 has ended". */
bugpack_status bp_process_fail_ended(const bp_process *process, bugpack_error *error);

/* Reads stat and checks that it is of the process that was opened. */
bugpack_status bp_process_read_stat(const bp_process *process, bp_proc_stat *ret_stat,
                                    bugpack_error *error);

/* After reading: checks that the process had not ended by then. */
bugpack_status bp_process_check_alive(const bp_process *process, bugpack_error *error);

/* Nanoseconds since boot, suspended time included; or the recording's. */
uint64_t bp_process_boottime_ns(const bp_process *process);

/* When the process began, in nanoseconds since boot. */
uint64_t bp_process_start_ns(const bp_process *process);

/* The ids of all threads, as the kernel lists them. `ret_tids` is the caller's to free. */
bugpack_status bp_process_list_threads(const bp_process *process, uint32_t **ret_tids,
                                       size_t *ret_count, bugpack_error *error);

/*
 * Opens the directory of a thread that has not ended, O_PATH: when the first thread ends before
 * the others, /proc/<pid> itself shows neither memory nor files. -1 when there is none.
 */
int bp_process_open_living_thread(const bp_process *process);

/*
 * Appends the process ids of the living children: from the "children" files of the threads in
 * `snapshot`, or, where the kernel has none (CONFIG_PROC_CHILDREN), from the stat of every process.
 * Best effort: a process that ends meanwhile may hide another.
 */
bugpack_status bp_process_list_children(const bp_process *process, int proc_fd,
                                        const bp_task_snapshot *snapshot, bp_pid_list *children,
                                        bugpack_error *error);

/* Reads the counters of this one process. */
bugpack_status bp_process_snapshot(const bp_process *process, bool with_names,
                                   bp_task_snapshot *ret_snapshot, bugpack_error *error);

#endif
