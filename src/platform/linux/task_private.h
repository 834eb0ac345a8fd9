/*
 * A process as the Linux files hold it, and what they share.
 */
#ifndef BP_PLATFORM_LINUX_TASK_PRIVATE_H
#define BP_PLATFORM_LINUX_TASK_PRIVATE_H

#include <stdatomic.h>

#include "platform/linux/proc_root.h"
#include "platform/linux/proc_text.h"
#include "platform/process_tree.h"

struct bp_task {
    atomic_uint reference_count;
    pid_t pid;
    char name[64]; /* when it was opened */
    /* Our own, and /proc counts threads as we do: their clocks can be asked without a file. */
    bool is_own;
    /* It was a zombie already when it was opened; then being one is not an end. */
    bool was_zombie;
    bp_proc_root root; /* its fd is not ours and not used any more */
    int directory_fd;  /* /proc/<pid>, O_PATH */
    int pidfd;         /* -1 where there are none */
    /* Held open, so that a snapshot needs no new descriptor: a host that has run out of them is one
     * that a report is about. */
    int threads_fd; /* /proc/<pid>/task */
    int statm_fd;
    uint64_t start_ticks;
    char *entries;             /* what getdents64 fills */
    struct bp_task_tree *tree; /* NULL without descendants */
};

/* A task of process `pid` that holds nothing yet; for bp_task_close. NULL without memory. */
bp_task *bp_task_new(const bp_proc_root *root, pid_t pid);

/* Reads a whole small file. The length, or -1 with errno; one that fills `out` may be cut off. */
ssize_t bp_proc_read_small(int dir_fd, const char *path, char *out, size_t out_bytes);

/* "process 7 has ended". */
bugpack_status bp_task_fail_ended(const bp_task *task, bugpack_error *error);

/* A zombie whose other threads live on is a process that goes on without its first thread. */
bool bp_proc_is_zombie(const bp_proc_stat *stat);

/* Reads stat of whatever process this is. */
bugpack_status bp_task_read_first_stat(const bp_task *task, bp_proc_stat *ret_stat,
                                       bugpack_error *error);

/* Reads stat and makes sure that it speaks of the process that was opened. */
bugpack_status bp_task_read_stat(const bp_task *task, bp_proc_stat *ret_stat, bugpack_error *error);

/* After reading: makes sure that the process had not ended by then. */
bugpack_status bp_task_check_alive(const bp_task *task, bugpack_error *error);

/* Nanoseconds since boot, suspended time included; or the recording's. */
uint64_t bp_task_boottime_ns(const bp_task *task);

/* When the process began, in nanoseconds since boot. */
uint64_t bp_task_start_ns(const bp_task *task);

/*
 * The ids of all threads, as the kernel lists them, in counters that are zero otherwise.
 * `ret_counters` is the caller's to free.
 */
bugpack_status bp_task_list_threads(bp_task *task, bp_thread_counters **ret_counters,
                                    size_t *ret_count, bugpack_error *error);

/*
 * Opens the directory of a thread that lives, O_PATH, for when the first thread has ended before
 * the others: then /proc/<pid> itself shows neither memory nor files. -1 when there is none.
 */
int bp_task_open_living_thread(bp_task *task);

/* What a task with descendants remembers between snapshots (task_tree.c). */
bugpack_status bp_task_tree_new(const bp_proc_root *root, struct bp_task_tree **ret_tree,
                                bugpack_error *error);
void bp_task_tree_free(struct bp_task_tree *tree);

/* A tree of the same root that remembers what this one does. */
bugpack_status bp_task_tree_clone(const struct bp_task_tree *tree, struct bp_task_tree **ret_clone,
                                  bugpack_error *error);

/* Adds what all descendants have to a snapshot of the first process. */
bugpack_status bp_task_tree_add(bp_task *task, bool with_names, bp_task_snapshot *snapshot,
                                bugpack_error *error);

/* A snapshot of the one process, as bp_task_snapshot_take makes it without descendants. */
bugpack_status bp_task_snapshot_one(bp_task *task, bool with_names, bp_task_snapshot *ret_snapshot,
                                    bugpack_error *error);

/*
 * The process ids of a process's living children, appended to a list that the caller frees: from
 * the "children" files of its threads, or, where the kernel has none (CONFIG_PROC_CHILDREN), from
 * the stat of every process. Best effort: whatever ends meanwhile may hide another.
 */
bugpack_status bp_task_list_children(const bp_task *task, int proc_fd,
                                     const bp_task_snapshot *snapshot, bp_pid_list *children,
                                     bugpack_error *error);

#define BP_TASK_ENTRIES_BYTES ((size_t)256 * 1024)

#endif
