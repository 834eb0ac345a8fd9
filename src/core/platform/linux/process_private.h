/*
 * A handle on a process, opened once and known to be the same process ever after, as the Linux
 * files hold it; or on one with its descendants.
 */
#ifndef BP_PLATFORM_LINUX_PROCESS_PRIVATE_H
#define BP_PLATFORM_LINUX_PROCESS_PRIVATE_H

#include "base/fd_mark.h"
#include "platform/linux/proc_list.h"
#include "platform/linux/proc_text.h"
#include "platform/task.h"

/* Where processes are read from: /proc, or a recording of it with the clocks of its time. */
typedef struct bp_proc_root {
    int fd; /* borrowed */
    /* The ids in it are those that system calls take: not so in a recording, nor where /proc
     * belongs to another pid namespace than ours. Then the kernel is not asked about a number. */
    bool has_our_ids;
    /* A recording: the clocks show the values below, and no file outside it is looked for. */
    bool is_recording;
    uint64_t monotonic_ns, boottime_ns, wall_ns;
    uint64_t ticks_per_sec;
    uint64_t page_bytes;
} bp_proc_root;

/* A thread of our own process, as its stat was read last. */
typedef struct bp_known_thread {
    uint64_t inode; /* of its directory under /proc: another one may be another thread */
    uint64_t birth;
    uint32_t tid;
    unsigned read_count; /* 0: never, and nothing is known but the ids */
    char name[16];       /* TASK_COMM_LEN */
} bp_known_thread;

/* In the order that the kernel lists them, which is that of their births. */
typedef struct bp_known_threads {
    bp_known_thread *items;
    size_t count;
    size_t turn;      /* which of them are read again next */
    bool must_reread; /* with the next snapshot */
} bp_known_threads;

/* Times are in the unit of the system's snapshots. */
typedef struct bp_tree_member {
    pid_t pid;
    uint64_t start;  /* with the pid it identifies a process */
    uint64_t cpu;    /* its own and its waited-for children's */
    uint64_t waited; /* the latter alone */
} bp_tree_member;

typedef struct bp_tree_members {
    bp_tree_member *items;
    size_t count, capacity;
} bp_tree_members;

/*
 * Descriptors stay open, so that a snapshot needs no new one: a host that has run out of them is
 * one that a report is about.
 *
 * With its descendants it has the members of the tree, and one sum of CPU time that only grows. A
 * parent that waits for a child takes over its time (getrusage(2), RUSAGE_CHILDREN). Otherwise, as
 * with an ignored SIGCHLD, the last time of the child is remembered and counted as lost. A parent
 * is read before its children, so an ended child is first pending, and lost only after a round in
 * which no process ended. A zombie is still a member: its time would count twice once its parent
 * waits.
 */
struct bp_task {
    pid_t pid;
    char name[64]; /* when it was opened */
    /* Our own, and /proc counts threads as we do: their clocks can be asked without a file. */
    bool is_own;
    bool was_zombie;   /* when it was opened; then being one is not an end */
    bp_proc_root root; /* its fd is -1, except of a tree, where it is this handle's own */
    int directory_fd;  /* /proc/<pid>, O_PATH */
    int threads_fd;    /* /proc/<pid>/task */
    int statm_fd;
    bp_fd_mark marks[3]; /* of the directory, the threads and statm */
    uint64_t start_ticks;
    bp_known_threads known; /* of our own process: names are not read each time */
    bool has_tree;
    bp_tree_members members; /* of the last snapshot */
    uint64_t pending, lost;
};

/*
 * Opens the process again if the host has closed a descriptor of it; then none of them is touched,
 * because another handle may have its number. To be called before a handle is used.
 */
bugpack_status bp_process_hold(bp_task *process, bugpack_error *error);

/* Opens a process below `root`, which is copied. 0 is our own by the link "self", which is right
 * also where /proc numbers processes otherwise. */
bugpack_status bp_task_open_below(const bp_proc_root *root, pid_t pid, bool with_descendants,
                                  bp_task **ret_task, bugpack_error *error);

/* Reads the counters of this one process. */
bugpack_status bp_process_snapshot(bp_task *process, bool with_names,
                                   bp_task_snapshot *ret_snapshot, bugpack_error *error);

/* Notes for a tree the counters of a process whose snapshot was just read and may be refined, and
 * appends the ids of its children. NO_MEMORY. */
bugpack_status bp_process_note(const bp_task *process, int proc_fd, bp_task_snapshot *snapshot,
                               bp_tree_member *ret_member, bp_pid_list *children);

/*
 * Reads one process of the tree of `first`: its counters, its threads and memory (none of a
 * zombie), and appends its children, best effort. The caller releases `ret_snapshot`. After
 * NO_MEMORY nothing more is read; after any other failure but NO_PROCESS a known process keeps its
 * last counters.
 */
bugpack_status bp_process_read_member(const bp_task *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children);

/* "process 7 has ended". */
bugpack_status bp_process_fail_ended(const bp_task *process, bugpack_error *error);

/* That, when the errno says so; else why one cannot do `what`: "read stat of". */
bugpack_status bp_process_fail(const bp_task *process, int system_errno, const char *what,
                               bugpack_error *error);

/* Reads stat and checks that it is of the process that was opened, and that this has not ended.
 * What was read before this is then of that process, too. */
bugpack_status bp_process_read_stat(const bp_task *process, bp_proc_stat *ret_stat,
                                    bugpack_error *error);

/* Nanoseconds since boot, suspended time included; or the recording's. */
uint64_t bp_process_boottime_ns(const bp_task *process);

/* All threads, as the kernel lists them; the list is the caller's to release. */
bugpack_status bp_process_list_threads(const bp_task *process, bp_proc_list *ret_threads,
                                       bugpack_error *error);

#endif
