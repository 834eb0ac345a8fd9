/*
 * Reads the directories of /proc that list by number: processes, the threads of one
 * (/proc/<pid>/task), its descriptors. Whoever looks at threads takes them from here, and their
 * stat with bp_proc_read_stat.
 */
#ifndef BP_PLATFORM_LINUX_PROC_LIST_H
#define BP_PLATFORM_LINUX_PROC_LIST_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Under /proc two things of one number have different inodes, although a thing may get another one
 * when memory is short: the inode belongs to the dentry, which goes with the thread (proc_flush_pid
 * in fs/proc/base.c).
 */
typedef struct bp_proc_entry {
    uint64_t id; /* first, for bp_array_compare_u64 */
    uint64_t inode;
} bp_proc_entry;

typedef struct bp_proc_list {
    bp_proc_entry *items;
    size_t count, capacity;
} bp_proc_list;

/*
 * Lists the decimal names in the directory `name` below `dir_fd`, or in `dir_fd` itself, from its
 * beginning, where `name` is NULL. They are in the kernel's order, which for threads is that of
 * their births. 0 or an errno; what was read before an error is in the list all the same. To be
 * released in any case.
 */
int bp_proc_list_read(int dir_fd, const char *name, bp_proc_list *ret_list);
void bp_proc_list_release(bp_proc_list *list);

/* Puts them in ascending order. */
void bp_proc_list_sort(bp_proc_list *list);

/* Process ids; the caller frees `pids`. */
typedef struct bp_pid_list {
    pid_t *pids;
    size_t count, capacity;
} bp_pid_list;

/* Appends the children that one thread of /proc/<pid>/task has forked. 0, or an errno: ENOENT where
 * it has ended or the kernel has no such list (CONFIG_PROC_CHILDREN). */
int bp_proc_list_children(int threads_fd, uint64_t tid, bp_pid_list *children);

/* False without memory, and for more than Linux can have. */
bool bp_pid_list_add(bp_pid_list *list, pid_t pid);

/* True if what was listed, or opened, has ended. */
static inline bool bp_proc_is_gone(int system_errno) {
    return system_errno == ENOENT || system_errno == ESRCH;
}

/*
 * Opens the directory of a thread of /proc/<pid>/task that has not ended, O_PATH: when the first
 * thread ends before the others, /proc/<pid> itself shows neither memory nor files. `ret_tid` may
 * be NULL. -1 with errno: ESRCH when all have ended, else why it is not known.
 */
int bp_proc_open_living_thread(int threads_fd, pid_t *ret_tid);

/* Opens /proc/<pid>, or that directory in its place; 0 is our own process. -1 with errno. */
int bp_proc_open_process(pid_t pid);

#endif
