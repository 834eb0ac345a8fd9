/*
 * What macOS shows of a process beside its counters. There are no cgroups, OOM scores, call counts,
 * byte counts of read and write, or swap per process. Limits and both kinds of context switches are
 * visible to the process itself only.
 */
#include "platform/process_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysctl.h>

#include "base/clock.h"
#include "base/status.h"
#include "platform/darwin/convert.h"
#include "platform/darwin/process_private.h"

static const size_t command_line_max_bytes = (size_t)1024 * 1024;
static const size_t arguments_max_bytes = (size_t)4 * 1024 * 1024;
static const int fd_max = 1 << 20;

static bp_known_uint known(uint64_t value) {
    return (bp_known_uint){.known = true, .value = value};
}

/* The kernel's int counters stop at their largest value or wrap: below 0 nothing is known. */
static bp_known_uint known_count(int64_t value) {
    return value >= 0 ? known((uint64_t)value) : (bp_known_uint){0};
}

static void fill_from_bsd(const bp_process *process, const struct proc_bsdinfo *info,
                          bp_process_facts *facts) {
    facts->parent_pid = known(info->pbi_ppid);
    facts->uid = known(info->pbi_uid);
    facts->gid = known(info->pbi_gid);
    facts->state = bp_darwin_state(info->pbi_status, 0);
    if (process->start.seconds < UINT64_MAX / BP_NS_PER_SEC - 1) {
        facts->started_wall_ns = known(process->start.seconds * BP_NS_PER_SEC +
                                       process->start.microseconds % 1000000 * 1000);
    }
}

static void read_task_info(const bp_process *process, const struct proc_bsdinfo *bsd,
                           bp_process_facts *facts) {
    struct proc_taskinfo info;
    if (!bp_darwin_pidinfo(process->pid, PROC_PIDTASKINFO, 0, &info, (int)sizeof info)) {
        bp_facts_deny(facts, "counters", errno);
        return;
    }
    facts->state = bp_darwin_state(bsd->pbi_status, info.pti_numrunning);
    facts->thread_count = known_count(info.pti_threadnum);
    facts->major_faults = known_count(info.pti_pageins);
    facts->minor_faults = known_count((int64_t)info.pti_faults - info.pti_pageins);
}

static void read_storage(const bp_process *process, bp_process_facts *facts) {
    struct rusage_info_v2 usage;
    memset(&usage, 0, sizeof usage);
    if (proc_pid_rusage(process->pid, RUSAGE_INFO_V2, (rusage_info_t *)&usage) != 0) {
        bp_facts_deny(facts, "input and output", errno);
        return;
    }
    facts->read_bytes = known(usage.ri_diskio_bytesread);
    facts->written_bytes = known(usage.ri_diskio_byteswritten);
}

/* Visible to the process itself only. ru_maxrss is in bytes here, not in KiB. */
static void read_own_usage(bp_process_facts *facts) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        facts->voluntary_switches = known_count(usage.ru_nvcsw);
        facts->involuntary_switches = known_count(usage.ru_nivcsw);
        facts->peak_rss_kb = known_count(usage.ru_maxrss / 1024);
    }
}

/* RLIMIT_RSS is not among them: here it is another word for RLIMIT_AS (sys/resource.h). */
static const struct {
    int resource;
    const char *name, *unit;
} limit_table[] = {
    {RLIMIT_CPU, "Max cpu time", "seconds"},      {RLIMIT_FSIZE, "Max file size", "bytes"},
    {RLIMIT_DATA, "Max data size", "bytes"},      {RLIMIT_STACK, "Max stack size", "bytes"},
    {RLIMIT_CORE, "Max core file size", "bytes"}, {RLIMIT_NPROC, "Max processes", "processes"},
    {RLIMIT_NOFILE, "Max open files", "files"},   {RLIMIT_MEMLOCK, "Max locked memory", "bytes"},
    {RLIMIT_AS, "Max address space", "bytes"}};

enum { LIMIT_COUNT = sizeof limit_table / sizeof limit_table[0] };

/* The limits of our own process, under the names that they have on Linux, so that one search works
 * for reports of both. False when memory is short. */
static bool read_limits(bp_process_facts *facts) {
    facts->limits = calloc(LIMIT_COUNT, sizeof *facts->limits);
    if (facts->limits == NULL) {
        return false;
    }
    for (size_t i = 0; i < LIMIT_COUNT; i++) {
        struct rlimit limit;
        if (getrlimit(limit_table[i].resource, &limit) != 0) {
            continue;
        }
        bp_resource_limit *out = &facts->limits[facts->limit_count++];
        memcpy(out->name, limit_table[i].name, strlen(limit_table[i].name) + 1);
        memcpy(out->unit, limit_table[i].unit, strlen(limit_table[i].unit) + 1);
        out->soft_unlimited = limit.rlim_cur == RLIM_INFINITY;
        out->hard_unlimited = limit.rlim_max == RLIM_INFINITY;
        out->soft = limit.rlim_cur;
        out->hard = limit.rlim_max;
    }
    return true;
}

/* Counts open files. Without a buffer the kernel returns the size it needs, with a margin. */
static bool count_fds(const bp_process *process, bp_process_facts *facts) {
    int bytes = bp_darwin_pidlist(process->pid, PROC_PIDLISTFDS, NULL, 0);
    int room = bytes / (int)sizeof(struct proc_fdinfo) + 32;
    if (bytes < 0 || room > fd_max) {
        bp_facts_deny(facts, "open files", bytes < 0 ? errno : E2BIG);
        return true;
    }
    struct proc_fdinfo *list = calloc((size_t)room, sizeof *list);
    if (list == NULL) {
        return false;
    }
    bytes = bp_darwin_pidlist(process->pid, PROC_PIDLISTFDS, list, room * (int)sizeof *list);
    if (bytes >= 0) {
        facts->fd_count = known((uint64_t)bytes / sizeof *list);
    } else {
        bp_facts_deny(facts, "open files", errno);
    }
    free(list);
    return true;
}

bugpack_status bp_task_count_files(bp_task *task, uint64_t *ret_count, bugpack_error *error) {
    bp_process_facts facts = {0};
    if (!count_fds(task->process, &facts)) {
        return bp_fail_memory(error, "count open files");
    }
    if (!facts.fd_count.known) {
        return bp_fail(error, facts.is_refused ? BUGPACK_ERR_DENIED : BUGPACK_ERR_IO,
                       "cannot count %s", facts.denied);
    }
    *ret_count = facts.fd_count.value;
    return BUGPACK_OK;
}

/* A copy of a path that may lack its NUL; false when memory is short. */
static bool copy_path(const char *path, size_t capacity, char **ret_path) {
    size_t length = strnlen(path, capacity);
    if (length == 0) {
        return true;
    }
    *ret_path = malloc(length + 1);
    if (*ret_path == NULL) {
        return false;
    }
    memcpy(*ret_path, path, length);
    (*ret_path)[length] = '\0';
    return true;
}

static bool read_paths(const bp_process *process, bp_process_facts *facts) {
    char executable[PROC_PIDPATHINFO_MAXSIZE];
    errno = 0;
    int length = proc_pidpath(process->pid, executable, sizeof executable);
    if (length > 0 && (size_t)length <= sizeof executable) {
        if (!copy_path(executable, (size_t)length, &facts->executable)) {
            return false;
        }
    } else {
        bp_facts_deny(facts, "executable", errno);
    }
    struct proc_vnodepathinfo paths;
    if (!bp_darwin_pidinfo(process->pid, PROC_PIDVNODEPATHINFO, 0, &paths, (int)sizeof paths)) {
        bp_facts_deny(facts, "working directory", errno);
        return true;
    }
    return copy_path(paths.pvi_cdir.vip_path, sizeof paths.pvi_cdir.vip_path,
                     &facts->working_directory);
}

/* Takes the arguments, and only those, out of what the kernel copied. False without memory. */
static bool take_arguments(const char *memory, size_t memory_bytes, bp_process_facts *facts) {
    bp_darwin_procargs args;
    if (!bp_darwin_parse_procargs(memory, memory_bytes, &args)) {
        bp_facts_note(facts, "command line", "the kernel's copy makes no sense");
        return true;
    }
    bp_buffer *line = &facts->command_line;
    size_t bytes = args.arguments_bytes;
    if (bytes > command_line_max_bytes - 1) {
        bytes = command_line_max_bytes - 1;
        bp_facts_note(facts, "the rest of the command line", "over the limit of 1 MiB");
    }
    if (bytes > 0 && bp_buffer_append(line, args.arguments, bytes) != BUGPACK_OK) {
        return false;
    }
    bool is_ended = line->size == 0 || line->data[line->size - 1] == '\0';
    return is_ended || bp_buffer_append_char(line, '\0') == BUGPACK_OK;
}

/* With a buffer smaller than arguments and environment can be, the kernel copies their end. */
static bool read_command_line(const bp_process *process, bp_process_facts *facts) {
    int limit = 0;
    size_t bytes = sizeof limit;
    if (sysctl((int[]){CTL_KERN, KERN_ARGMAX}, 2, &limit, &bytes, NULL, 0) != 0) {
        bp_facts_deny(facts, "command line", errno);
        return true;
    }
    if (limit <= 0 || (size_t)limit > arguments_max_bytes) {
        limit = (int)arguments_max_bytes;
    }
    bytes = (size_t)limit;
    char *memory = malloc(bytes);
    if (memory == NULL) {
        return false;
    }
    bool enough_memory = true;
    if (sysctl((int[]){CTL_KERN, KERN_PROCARGS2, process->pid}, 3, memory, &bytes, NULL, 0) == 0) {
        enough_memory = take_arguments(memory, bytes, facts);
    } else {
        bp_facts_deny(facts, "command line", errno);
    }
    free(memory);
    return enough_memory;
}

/* Each group can be missing on its own; false when memory is short. */
static bool read_groups(const bp_process *process, bp_process_facts *facts) {
    read_storage(process, facts);
    if (process->is_own) {
        read_own_usage(facts);
        if (!read_limits(facts)) {
            return false;
        }
    }
    return count_fds(process, facts) && read_paths(process, facts) &&
           read_command_line(process, facts);
}

/* Our own process needs not even its identity. */
static bugpack_status read_identity(const bp_process *process, bp_process_facts *facts,
                                    bugpack_error *error) {
    struct proc_bsdinfo bsd = {0};
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_darwin_check_same(process, &bsd, &detail);
    if (status == BUGPACK_OK) {
        fill_from_bsd(process, &bsd, facts);
        read_task_info(process, &bsd, facts);
    } else if (status == BUGPACK_ERR_NO_PROCESS && !process->is_own) {
        return bp_fail(error, status, "%s", detail.message);
    } else {
        bp_facts_deny(facts, "identity and counters", detail.system_errno);
    }
    return BUGPACK_OK;
}

bugpack_status bp_process_facts_read(bp_task *task, bp_process_facts *ret_facts,
                                     bugpack_error *error) {
    const bp_process *process = task->process;
    bp_process_facts facts = {.pid = process->pid};
    bp_buffer_init(&facts.command_line, command_line_max_bytes);
    memcpy(facts.name, process->name, sizeof facts.name);
    bugpack_status status = read_identity(process, &facts, error);
    if (status == BUGPACK_OK && !read_groups(process, &facts)) {
        status = bp_fail_memory(error, "read the facts of a process");
    }
    if (status == BUGPACK_OK && !process->is_own) {
        /* All that was read is of this process if it is still there. */
        struct proc_bsdinfo bsd;
        bugpack_error detail = BUGPACK_ERROR_INIT;
        if (bp_darwin_check_same(process, &bsd, &detail) == BUGPACK_ERR_NO_PROCESS) {
            status = bp_fail(error, BUGPACK_ERR_NO_PROCESS, "%s", detail.message);
        }
    }
    if (status != BUGPACK_OK) {
        bp_process_facts_release(&facts);
        return status;
    }
    *ret_facts = facts;
    return BUGPACK_OK;
}
