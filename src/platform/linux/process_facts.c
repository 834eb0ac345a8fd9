/*
 * What the files of a process say about it, next to its counters.
 */
#include "platform/process_facts.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/facts_private.h"

static const size_t command_line_max_bytes = (size_t)1024 * 1024;
static const size_t path_max_bytes = 4096;
enum { LIMIT_MAX = 32 };

/* Reads a text; false, noted as denied where it is so, when it cannot be had. */
static bool read_text(const bp_task *task, bp_process_facts *facts, const char *path,
                      const char *what, char *text, size_t text_bytes, size_t *ret_length) {
    ssize_t length = bp_proc_read_small(task->directory_fd, path, text, text_bytes);
    if (length < 0) {
        bp_facts_deny(facts, what, errno);
        return false;
    }
    *ret_length = (size_t)length;
    return true;
}

static bp_known_uint known(uint64_t value) {
    return (bp_known_uint){.known = true, .value = value};
}

static bp_known_uint find_number(const char *text, size_t length, const char *key, size_t index) {
    bp_known_uint number = {0};
    number.known = bp_proc_find_number(text, length, key, index, &number.value);
    return number;
}

static void read_status(const bp_task *task, bp_process_facts *facts) {
    char text[8192];
    size_t length;
    if (!read_text(task, facts, "status", "status", text, sizeof text, &length)) {
        return;
    }
    /* The effective ids, which are the second of four: what the process may do. */
    facts->uid = find_number(text, length, "Uid", 1);
    facts->gid = find_number(text, length, "Gid", 1);
    facts->peak_rss_kb = find_number(text, length, "VmHWM", 0);
    facts->swap_kb = find_number(text, length, "VmSwap", 0);
}

static void read_io(const bp_task *task, bp_process_facts *facts) {
    char text[1024];
    size_t length;
    if (!read_text(task, facts, "io", "input and output", text, sizeof text, &length)) {
        return;
    }
    facts->read_bytes = find_number(text, length, "read_bytes", 0);
    facts->written_bytes = find_number(text, length, "write_bytes", 0);
    facts->read_chars = find_number(text, length, "rchar", 0);
    facts->written_chars = find_number(text, length, "wchar", 0);
    facts->read_calls = find_number(text, length, "syscr", 0);
    facts->write_calls = find_number(text, length, "syscw", 0);
}

static void read_oom(const bp_task *task, bp_process_facts *facts) {
    char score[64], adjustment[64];
    size_t score_length, adjustment_length;
    facts->has_oom =
        read_text(task, facts, "oom_score", "OOM score", score, sizeof score, &score_length) &&
        read_text(task, facts, "oom_score_adj", "OOM score", adjustment, sizeof adjustment,
                  &adjustment_length) &&
        bp_proc_parse_number(score, score_length, &facts->oom_score) &&
        bp_proc_parse_number(adjustment, adjustment_length, &facts->oom_score_adj);
}

static bool read_cgroup(const bp_task *task, bp_process_facts *facts) {
    char text[16384];
    size_t length, path_bytes;
    const char *path;
    if (!read_text(task, facts, "cgroup", "cgroup", text, sizeof text, &length) ||
        !bp_proc_find_cgroup(text, length, &path, &path_bytes)) {
        return true;
    }
    facts->cgroup = strndup(path, path_bytes);
    return facts->cgroup != NULL;
}

static bool read_limits(const bp_task *task, bp_process_facts *facts) {
    char text[4096];
    size_t length;
    if (!read_text(task, facts, "limits", "limits", text, sizeof text, &length)) {
        return true;
    }
    facts->limits = calloc(LIMIT_MAX, sizeof *facts->limits);
    if (facts->limits == NULL) {
        return false;
    }
    facts->limit_count = bp_proc_parse_limits(text, length, facts->limits, LIMIT_MAX);
    return true;
}

/* The arguments as they are in memory; a program may overwrite them, and leave the last NUL off. */
static bool read_command_line(const bp_task *task, bp_process_facts *facts) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer *line = &facts->command_line;
    bp_buffer_init(line, command_line_max_bytes);
    bugpack_status status = bp_file_read_at(task->directory_fd, "cmdline", line, &error);
    if (line->status == BUGPACK_ERR_NO_MEMORY && line->size < command_line_max_bytes) {
        return false;
    }
    if (status != BUGPACK_OK && line->size == 0) {
        bp_facts_deny(facts, "command line", error.system_errno);
        return true;
    }
    if (status != BUGPACK_OK) {
        bp_facts_note(facts, "the rest of the command line", "over the limit of 1 MiB");
    }
    if (line->size > 0 && line->data[line->size - 1] != '\0') {
        if (line->size == command_line_max_bytes) {
            line->data[line->size - 1] = '\0';
            return true;
        }
        return bp_buffer_append_char(line, '\0') == BUGPACK_OK;
    }
    return true;
}

/* Where a link leads; NULL when it cannot be read. False when memory is short. */
static bool read_link(const bp_task *task, bp_process_facts *facts, const char *name,
                      const char *what, char **ret_target) {
    char *target = malloc(path_max_bytes);
    if (target == NULL) {
        return false;
    }
    ssize_t length = readlinkat(task->directory_fd, name, target, path_max_bytes - 1);
    if (length < 0) {
        bp_facts_deny(facts, what, errno);
        free(target);
        return true;
    }
    target[length] = '\0';
    *ret_target = target;
    return true;
}

/* Counts open files. Since Linux 6.2 the directory's size is their number (proc(5)). */
static void count_fds(const bp_task *task, bp_process_facts *facts) {
    struct stat info;
    if (!task->root.is_recording && fstatat(task->directory_fd, "fd", &info, 0) == 0 &&
        info.st_size > 0) {
        facts->fd_count = known((uint64_t)info.st_size);
        return;
    }
    int fd = openat(task->directory_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *directory = fd < 0 ? NULL : fdopendir(fd);
    if (directory == NULL) {
        bp_facts_deny(facts, "open files", errno);
        if (fd >= 0) {
            (void)close(fd);
        }
        return;
    }
    uint64_t count = 0;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        count += entry->d_name[0] != '.';
    }
    (void)closedir(directory);
    /* The one that we count through is among our own. */
    facts->fd_count = known(count - (task->is_own && count > 0));
}

static void fill_from_stat(const bp_task *task, const bp_proc_stat *stat, bp_process_facts *facts) {
    facts->pid = task->pid;
    facts->parent_pid = known(stat->parent_pid);
    memcpy(facts->name, stat->name, sizeof facts->name);
    facts->state = stat->state;
    facts->is_kernel_thread = stat->is_kernel_thread;
    facts->thread_count = known(stat->thread_count);
    facts->minor_faults = known(stat->minor_faults);
    facts->major_faults = known(stat->major_faults);
    uint64_t wall_ns = task->root.is_recording ? task->root.wall_ns : bp_clock_wall_ns();
    uint64_t boottime_ns = bp_task_boottime_ns(task);
    uint64_t start_ns = bp_task_start_ns(task);
    uint64_t age_ns = boottime_ns > start_ns ? boottime_ns - start_ns : 0;
    if (age_ns <= wall_ns) {
        facts->started_wall_ns = known(wall_ns - age_ns);
    }
}

/*
 * Whom to ask for what only a living thread shows: the process, or, where its first thread has
 * ended before the others, the directory of one of those. A zombie has given its files back, and a
 * kernel thread never had any: then there is nobody, and it is not open.
 */
static bp_task choose_witness(bp_task *task, const bp_proc_stat *stat) {
    bp_task witness = {.pid = task->pid,
                       .is_own = task->is_own,
                       .root = task->root,
                       .directory_fd = task->directory_fd,
                       .pidfd = -1,
                       .threads_fd = -1,
                       .statm_fd = -1};
    if (stat->is_kernel_thread || stat->state == 'Z') {
        witness.directory_fd = stat->thread_count > 1 ? bp_task_open_living_thread(task) : -1;
    }
    return witness;
}

/* False when memory is short. */
static bool read_files(const bp_task *witness, bp_process_facts *facts) {
    count_fds(witness, facts);
    return read_link(witness, facts, "exe", "executable", &facts->executable) &&
           read_link(witness, facts, "cwd", "working directory", &facts->working_directory);
}

bugpack_status bp_process_facts_read(bp_task *task, bp_process_facts *ret_facts,
                                     bugpack_error *error) {
    bp_process_facts facts = {0};
    bp_buffer_init(&facts.command_line, command_line_max_bytes);
    bp_task witness = {.directory_fd = -1};
    bp_proc_stat stat;
    bugpack_status status = bp_task_read_stat(task, &stat, error);
    if (status != BUGPACK_OK) {
        goto out;
    }
    fill_from_stat(task, &stat, &facts);
    witness = choose_witness(task, &stat);
    bool has_files = witness.directory_fd >= 0;
    const bp_task *shown = has_files ? &witness : task;
    read_status(shown, &facts);
    read_io(task, &facts);
    read_oom(task, &facts);
    if (!read_cgroup(shown, &facts) || !read_limits(shown, &facts) ||
        !read_command_line(shown, &facts) || (has_files && !read_files(shown, &facts))) {
        status = bp_fail_memory(error, "read the facts of a process");
        goto out;
    }
    status = bp_facts_read_switches(task, &facts, error);
    if (status == BUGPACK_OK && has_files) {
        status = bp_facts_read_objects(shown, &facts, error);
    }
    if (status == BUGPACK_OK && !task->is_own) {
        status = bp_task_check_alive(task, error);
    }
    if (status != BUGPACK_OK) {
        goto out;
    }
    *ret_facts = facts;
    facts = (bp_process_facts){0};
out:
    if (witness.directory_fd >= 0 && witness.directory_fd != task->directory_fd) {
        (void)close(witness.directory_fd);
    }
    bp_process_facts_release(&facts);
    return status;
}
