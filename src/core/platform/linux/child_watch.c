#include "platform/child_watch.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd_mark.h"
#include "base/file.h"
#include "base/hash.h"
#include "platform/linux/files.h"
#include "platform/linux/process_private.h"

enum { LIVING_MAX = 16, THREAD_MAX = 64, ARGUMENT_BYTES = 4096 };

/* Places beside those of commands. */
enum { OWN = BP_CHILD_COMMAND_MAX, UNKNOWN };

/* How often and how soon a child is looked at again, and how often in all of a window. */
enum { LOOK_MAX = 10, AGAIN_MAX = 400 };
static const uint64_t again_ns = BP_NS_PER_MS / 10;

/* A child that began within the window. */
typedef struct living_child {
    pid_t pid;
    uint64_t start_ticks;
    int fd; /* a pidfd; -1 for none */
    bp_fd_mark mark;
    size_t command; /* UNKNOWN: it is within execve(2), or has ended */
    char name[64];  /* as its command was found */
    int status;     /* of a zombie; 0: not known */
    bool is_listed;
} living_child;

struct bp_child_watch {
    bp_task *task;
    bp_children result; /* without its commands */
    bp_child_command commands[OWN + 1];
    size_t command_count; /* without OWN */
    uint64_t began_ticks, key, first_chars, waited_faults;
    living_child living[LIVING_MAX];
    size_t living_count;
    unsigned again_count;
};

/* Hashes the arguments and the working directory of the process in a directory; 0: not known. */
static uint64_t key_of(int dir_fd, const char *name) {
    char text[ARGUMENT_BYTES], path[PATH_MAX];
    ssize_t length = bp_proc_read_at(dir_fd, text, sizeof text, "%s/cmdline", name);
    int fd = length > 0 ? bp_proc_open_at(dir_fd, O_PATH | O_DIRECTORY, "%s", name) : -1;
    ssize_t path_length = fd >= 0 ? readlinkat(fd, "cwd", path, sizeof path) : -1;
    bp_file_close(fd);
    return path_length > 0
               ? XXH3_64bits_withSeed(text, (size_t)length, XXH3_64bits(path, (size_t)path_length))
               : 0;
}

/* Counts the bytes that the first thread has read, without its children. False where that is not
 * known. */
static bool read_chars(const bp_task *task, uint64_t *ret_chars) {
    char text[ARGUMENT_BYTES];
    ssize_t length =
        bp_proc_read_at(task->directory_fd, text, sizeof text, "task/%d/io", (int)task->pid);
    return length > 0 && bp_proc_find_number(text, (size_t)length, "rchar", 0, ret_chars);
}

bp_child_watch *bp_child_watch_new(bp_task *task) {
    bp_child_watch *watch = task->is_own ? NULL : calloc(1, sizeof *watch);
    if (watch != NULL) {
        uint64_t per_tick_ns = BP_NS_PER_SEC / task->root.ticks_per_sec;
        watch->task = task;
        watch->began_ticks = bp_process_boottime_ns(task) / per_tick_ns;
        watch->key = key_of(task->directory_fd, ".");
        watch->result.has_reads = read_chars(task, &watch->first_chars);
    }
    return watch;
}

/* The place of the command of a child; UNKNOWN where there are too many. */
static size_t find_command(bp_child_watch *watch, uint64_t key, const char *name) {
    size_t place = key == watch->key ? OWN : 0;
    while (place < watch->command_count && watch->commands[place].key != key) {
        place++;
    }
    if (place == OWN && key != watch->key) {
        watch->result.has_more_commands = true;
        return UNKNOWN;
    }
    bp_child_command *command = &watch->commands[place];
    if (command->key != key) { /* it is new */
        command->key = key;
        command->is_own = place == OWN;
        memcpy(command->name, name, sizeof command->name);
        watch->command_count += place != OWN;
    }
    return place;
}

/* The stat of a child; false where it has gone. */
static bool read_child(const bp_task *task, pid_t pid, bp_proc_stat *ret_stat) {
    return bp_proc_read_stat(task->directory_fd, ret_stat, "../%d/stat", (int)pid) == 0 &&
           ret_stat->parent_pid == (uint64_t)task->pid;
}

/* Finds out what a child of this stat executes. False where it may yet execute something else: one
 * that was forked a moment ago has the arguments of its parent. */
static bool identify(bp_child_watch *watch, living_child *child, const bp_proc_stat *stat) {
    char name[24];
    bp_proc_stat again;
    bool has_ended = bp_proc_has_process_ended(stat);
    child->status = has_ended ? (int)stat->exit_status : 0;
    if (has_ended && child->command == OWN && strcmp(stat->name, child->name) != 0) {
        child->command = UNKNOWN; /* it has executed a program, whose arguments are gone */
    }
    if (has_ended || child->command < OWN) {
        return true;
    }
    (void)snprintf(name, sizeof name, "../%d", (int)child->pid);
    uint64_t key = key_of(watch->task->directory_fd, name);
    /* Its name changes before its arguments do: it may have executed between the readings. */
    if (key != 0 &&
        (!read_child(watch->task, child->pid, &again) || strcmp(again.name, stat->name) != 0)) {
        return false;
    }
    if (key != 0) {
        child->command = find_command(watch, key, stat->name);
        memcpy(child->name, stat->name, sizeof child->name);
    }
    return child->command < OWN || (child->command == UNKNOWN && watch->result.has_more_commands);
}

/* The status of a process that has ended, also after its parent has waited for it: PIDFD_GET_INFO
 * with PIDFD_INFO_EXIT (include/uapi/linux/pidfd.h, Linux 6.15). */
static bool read_exit(int fd, int *ret_status) {
    struct {
        uint64_t mask, cgroup;
        uint32_t ids[11];
        int32_t status;
    } info = {.mask = 1u << 3};
    bool is_known =
        fd >= 0 && ioctl(fd, _IOWR(0xff, 11, char[64]), &info) == 0 && (info.mask & 1u << 3) != 0;
    *ret_status = is_known ? info.status : *ret_status;
    return is_known;
}

/* Counts one that has ended, or that lives at the end. */
static void count(bp_child_command *commands, const living_child *child, uint64_t age_ns) {
    bp_child_command *command = &commands[child->command];
    int status = child->status;
    bool is_known =
        (bp_fd_is_ours(child->fd, child->mark) && read_exit(child->fd, &status)) || status != 0;
    command->count++;
    command->longest_ns = age_ns > command->longest_ns ? age_ns : command->longest_ns;
    command->succeeded_count += is_known && status == 0;
    command->failed_count += is_known && status != 0;
    command->status = is_known && status != 0 ? status : command->status;
}

static uint64_t age_of(const bp_child_watch *watch, const living_child *child) {
    uint64_t began_ns = child->start_ticks * (BP_NS_PER_SEC / watch->task->root.ticks_per_sec);
    uint64_t now_ns = bp_process_boottime_ns(watch->task);
    return now_ns > began_ns ? now_ns - began_ns : 0;
}

/* Identifies one that is listed. One that was forked a moment ago is looked at again: it executes
 * its program soon, and may end soon after. */
static void look_at_child(bp_child_watch *watch, living_child *child) {
    bp_proc_stat stat;
    for (unsigned i = 0;
         read_child(watch->task, child->pid, &stat) && stat.start_ticks == child->start_ticks;
         i++) {
        bool is_pause = strcmp(stat.name, "sleep") == 0;
        child->is_listed = !is_pause;
        child->command = is_pause ? UNKNOWN : child->command;
        if (is_pause || identify(watch, child, &stat) || i == LOOK_MAX ||
            watch->again_count == AGAIN_MAX) {
            return;
        }
        watch->again_count++;
        bp_clock_sleep_until(bp_clock_monotonic_ns() + again_ns);
    }
}

static void look_at_listed(bp_child_watch *watch, pid_t pid) {
    bp_proc_stat stat;
    for (size_t i = 0; i < watch->living_count; i++) {
        if (watch->living[i].pid == pid) {
            look_at_child(watch, &watch->living[i]);
            return;
        }
    }
    if (watch->living_count == LIVING_MAX) {
        return;
    }
    int fd = watch->task->root.has_our_ids ? (int)syscall(SYS_pidfd_open, pid, 0u) : -1;
    if (!read_child(watch->task, pid, &stat) || stat.start_ticks <= watch->began_ticks) {
        bp_file_close(fd);
        return;
    }
    living_child *child = &watch->living[watch->living_count++];
    *child = (living_child){.pid = pid,
                            .start_ticks = stat.start_ticks,
                            .fd = fd,
                            .mark = bp_fd_mark_of(fd),
                            .command = UNKNOWN,
                            .is_listed = true};
    look_at_child(watch, child);
}

static bool list_children(const bp_task *task, bp_pid_list *children) {
    bp_proc_list threads = {0};
    bool is_known = false;
    if (bp_process_list_threads(task, &threads, NULL) == BUGPACK_OK) {
        for (size_t i = 0; i < threads.count && i < THREAD_MAX; i++) {
            is_known =
                bp_proc_list_children(task->threads_fd, threads.items[i].id, children) == 0 ||
                is_known;
        }
    }
    bp_proc_list_release(&threads);
    return is_known;
}

bool bp_child_watch_look(bp_child_watch *watch) {
    bp_pid_list children = {.pids = NULL};
    bp_proc_stat stat;
    if (watch == NULL || bp_process_hold(watch->task, NULL) != BUGPACK_OK ||
        bp_process_read_stat(watch->task, &stat, NULL) != BUGPACK_OK) {
        return false;
    }
    bp_children *result = &watch->result;
    result->ended_count += result->look_count > 0 && stat.waited_faults != watch->waited_faults;
    watch->waited_faults = stat.waited_faults;
    if (list_children(watch->task, &children)) {
        result->has_counts = true;
        result->first_count = result->look_count == 0 ? children.count : result->first_count;
        result->last_count = children.count;
    }
    result->look_count++;
    bool are_few = children.count <= LIVING_MAX; /* of many, only the number is of interest */
    for (size_t i = 0; are_few && i < children.count; i++) {
        look_at_listed(watch, children.pids[i]);
    }
    free(children.pids);
    size_t left_count = 0;
    for (size_t i = 0; are_few && i < watch->living_count; i++) {
        living_child *child = &watch->living[i];
        if (child->is_listed) {
            child->is_listed = false;
            watch->living[left_count++] = *child;
            continue;
        }
        if (child->command != UNKNOWN) {
            count(watch->commands, child, age_of(watch, child));
        }
        bp_fd_close_ours(child->fd, child->mark);
    }
    watch->living_count = are_few ? left_count : watch->living_count;
    return result->ended_count > 0 || watch->command_count > 0 || watch->commands[OWN].is_own;
}

bool bp_child_watch_count(const bp_child_watch *watch, uint64_t *ret_count) {
    *ret_count = watch != NULL ? watch->result.last_count : 0;
    return watch != NULL && watch->result.has_counts;
}

bp_children bp_child_watch_result(const bp_child_watch *watch) {
    bp_children result = {.look_count = 0};
    uint64_t chars = 0;
    if (watch == NULL) {
        return result;
    }
    result = watch->result;
    bp_child_command commands[OWN + 1];
    memcpy(commands, watch->commands, sizeof commands);
    for (size_t i = 0; i < watch->living_count; i++) {
        if (watch->living[i].command != UNKNOWN) {
            count(commands, &watch->living[i], age_of(watch, &watch->living[i]));
        }
    }
    /* Beside others, its own ones may have executed one of them unseen. */
    for (size_t i = 0; i <= OWN; i++) {
        if (commands[i].count > 0 && (i != OWN || result.command_count == 0)) {
            result.commands[result.command_count++] = commands[i];
        }
    }
    result.has_reads = result.has_reads && read_chars(watch->task, &chars);
    result.read_chars = chars > watch->first_chars ? chars - watch->first_chars : 0;
    return result;
}

void bp_child_watch_free(bp_child_watch *watch) {
    for (size_t i = 0; watch != NULL && i < watch->living_count; i++) {
        bp_fd_close_ours(watch->living[i].fd, watch->living[i].mark);
    }
    free(watch);
}
