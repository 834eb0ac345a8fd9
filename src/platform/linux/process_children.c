/*
 * The descendants of a process.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_scan.h"
#include "platform/linux/process_private.h"

/* Takes the numbers of a piece of a "children" file. The last one may be cut, so it is moved to the
 * front. False without memory. */
static bool take_numbers(char *text, size_t *text_bytes, bool is_end, bp_pid_list *children) {
    bp_proc_scan scan = {text, text + *text_bytes};
    for (;;) {
        bp_proc_skip_blanks(&scan);
        const char *begin = scan.next;
        uint64_t pid;
        bool is_number = bp_proc_take_number(&scan, 10, &pid);
        if (!is_number || (scan.next == scan.end && !is_end)) {
            *text_bytes = is_number || begin == scan.end ? (size_t)(scan.end - begin) : 0;
            memmove(text, begin, *text_bytes);
            return true;
        }
        if (pid > 0 && pid <= INT32_MAX && !bp_pid_list_add(children, (pid_t)pid)) {
            return false;
        }
    }
}

/* The children that one thread has forked. 0, or an errno. */
static int read_children_file(const bp_process *process, uint64_t tid, bp_pid_list *children) {
    char text[4096];
    size_t text_bytes = 0;
    int fd =
        bp_proc_open_at(process->threads_fd, O_RDONLY, "%llu/children", (unsigned long long)tid);
    if (fd < 0) {
        return errno;
    }
    ssize_t count;
    int result = 0;
    do {
        count = read(fd, text + text_bytes, sizeof text - text_bytes);
        result = count < 0 ? errno : 0;
        text_bytes += count > 0 ? (size_t)count : 0;
        if (count >= 0 && !take_numbers(text, &text_bytes, count == 0, children)) {
            result = ENOMEM;
        }
    } while (count > 0 && result == 0);
    (void)close(fd);
    return result;
}

/* Every process whose parent this one is. 0, or an errno. */
static int scan_all(const bp_process *process, int proc_fd, bp_pid_list *children) {
    bp_proc_list list;
    bp_proc_stat stat;
    int result = bp_proc_list_read(proc_fd, ".", &list);
    for (size_t i = 0; result == 0 && i < list.count; i++) {
        uint64_t pid = list.items[i].id;
        if (pid > 0 && pid <= INT32_MAX &&
            bp_proc_read_stat(proc_fd, &stat, "%u/stat", (unsigned)pid) == 0 &&
            stat.parent_pid == (uint64_t)process->pid && !bp_pid_list_add(children, (pid_t)pid)) {
            result = ENOMEM;
        }
    }
    bp_proc_list_release(&list);
    return result;
}

/* Best effort, but for memory: a process that ends meanwhile may hide another. What fails for
 * another reason hides at least one, for all we know. */
static bugpack_status list_children(const bp_process *process, int proc_fd,
                                    bp_task_snapshot *snapshot, bp_pid_list *children) {
    bool has_file = false;
    bool has_failed = false;
    int result = 0;
    for (size_t i = 0; i < snapshot->thread_count && result != ENOMEM; i++) {
        result = read_children_file(process, snapshot->threads[i].tid, children);
        has_file = has_file || result == 0;
        has_failed = has_failed || bp_errno_is_trouble(result);
    }
    /* Kernels without CONFIG_PROC_CHILDREN have no such file. */
    if (!has_file && result != ENOMEM) {
        result = scan_all(process, proc_fd, children);
        has_failed = bp_errno_is_trouble(result);
    }
    snapshot->unread_count += has_failed;
    return result == ENOMEM ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
}

/* The counters of a member of the tree, and its children. */
static bugpack_status note(const bp_process *process, int proc_fd, bp_task_snapshot *one,
                           bp_tree_member *ret_member, bp_pid_list *children) {
    *ret_member = (bp_tree_member){.pid = process->pid,
                                   .start = process->start_ticks,
                                   .cpu = one->process_cpu + one->waited_cpu,
                                   .waited = one->waited_cpu};
    return list_children(process, proc_fd, one, children);
}

bugpack_status bp_process_note(bp_process *process, bp_task_snapshot *snapshot,
                               bp_tree_member *ret_member, bp_pid_list *children,
                               bugpack_error *error) {
    return note(process, process->root.fd, snapshot, ret_member, children) == BUGPACK_OK
               ? BUGPACK_OK
               : bp_fail_memory(error, "look at the descendants of a process");
}

static bugpack_status read_once(const bp_proc_root *root, pid_t pid, bool with_names,
                                bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                bp_pid_list *children) {
    bp_process *process = NULL;
    bp_task_snapshot one = {0};
    bugpack_status status =
        pid > 0 ? bp_process_open_below(root, pid, false, &process, NULL) : BUGPACK_ERR_NO_PROCESS;
    if (status != BUGPACK_OK) {
        return status;
    }
    status = bp_process_snapshot(process, with_names, &one, NULL);
    if (status == BUGPACK_OK) {
        status = note(process, root->fd, &one, ret_member, children);
    }
    if (status == BUGPACK_OK && !process->was_zombie) {
        *ret_snapshot = one;
        one = (bp_task_snapshot){0};
    }
    bp_task_snapshot_release(&one);
    bp_process_close(process);
    return status;
}

bugpack_status bp_process_read_member(void *first, pid_t pid, bool with_names,
                                      bp_tree_member *ret_member, bp_task_snapshot *ret_snapshot,
                                      bp_pid_list *children) {
    const bp_proc_root *root = &((const bp_process *)first)->root;
    bugpack_status status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    if (status == BUGPACK_ERR_NO_PROCESS) {
        /* It may have ended while it was read, and be a zombie now. */
        status = read_once(root, pid, with_names, ret_member, ret_snapshot, children);
    }
    return status;
}
