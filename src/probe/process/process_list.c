#include "process/process_list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"

enum { title_bytes = 200 };

/* NULL where it is refused. */
static char *read_executable(int proc_fd, uint32_t pid) {
    char path[48], target[4096];
    (void)snprintf(path, sizeof path, "%u/exe", (unsigned)pid);
    ssize_t length = readlinkat(proc_fd, path, target, sizeof target);
    return length > 0 && (size_t)length < sizeof target ? strndup(target, (size_t)length) : NULL;
}

static char *read_title(int proc_fd, uint32_t pid) {
    char text[title_bytes];
    ssize_t length = bp_proc_read_at(proc_fd, text, sizeof text, "%u/cmdline", (unsigned)pid);
    while (length > 0 && text[length - 1] == '\0') {
        length--;
    }
    for (ssize_t i = 0; i < length; i++) {
        text[i] = text[i] == '\0' ? ' ' : text[i];
    }
    return length > 0 ? strndup(text, (size_t)length) : NULL;
}

static char *read_cgroup(int proc_fd, uint32_t pid) {
    char text[8192];
    const char *found;
    size_t found_bytes;
    ssize_t length = bp_proc_read_at(proc_fd, text, sizeof text, "%u/cgroup", (unsigned)pid);
    return length > 0 && bp_proc_find_cgroup(text, (size_t)length, NULL, &found, &found_bytes)
               ? strndup(found, found_bytes)
               : NULL;
}

/* False where the process has ended, or is hidden. */
static bool read_one(int proc_fd, uint32_t pid, bool with_cgroup, bp_listed_process *process) {
    bp_proc_stat stat;
    if (bp_proc_read_stat(proc_fd, &stat, "%u/stat", (unsigned)pid) != 0) {
        return false;
    }
    *process = (bp_listed_process){.pid = (pid_t)pid,
                                   .parent_pid = (pid_t)stat.parent_pid,
                                   .start = stat.start_ticks,
                                   .is_zombie = bp_proc_has_process_ended(&stat)};
    (void)snprintf(process->name, sizeof process->name, "%s", stat.name);
    process->executable = read_executable(proc_fd, pid);
    process->title = read_title(proc_fd, pid);
    process->cgroup = with_cgroup ? read_cgroup(proc_fd, pid) : NULL;
    return true;
}

bugpack_status bp_process_list_read(bool with_cgroups, bp_process_list *ret_list,
                                    bugpack_error *error) {
    bp_proc_list pids = {.count = 0};
    int proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int failure = proc_fd < 0 ? errno : bp_proc_list_read(proc_fd, NULL, &pids);
    bp_process_list list = {.items =
                                failure == 0 ? calloc(pids.count + 1, sizeof *list.items) : NULL};
    bugpack_status status = BUGPACK_OK;
    if (failure != 0) {
        status = bp_fail_errno(error, failure, "cannot list the processes");
    } else if (list.items == NULL) {
        status = bp_fail_memory(error, "list the processes");
    }
    for (size_t i = 0; status == BUGPACK_OK && i < pids.count; i++) {
        list.count +=
            read_one(proc_fd, (uint32_t)pids.items[i].id, with_cgroups, &list.items[list.count]);
    }
    bp_proc_list_release(&pids);
    bp_file_close(proc_fd);
    if (status == BUGPACK_OK) {
        *ret_list = list;
    }
    return status;
}

bool bp_process_list_is_there(const bp_listed_process *process) {
    bp_proc_stat stat;
    return bp_proc_read_stat(AT_FDCWD, &stat, "/proc/%d/stat", (int)process->pid) == 0 &&
           stat.start_ticks == process->start;
}
