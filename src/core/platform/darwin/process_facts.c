/*
 * Facts that macOS shows of our own process beside its counters. There are no cgroups, OOM scores,
 * call counts, byte counts of read and write, or swap per process.
 */
#include "platform/process_facts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysctl.h>
#include <unistd.h>

#include "base/status.h"
#include "platform/darwin/task_private.h"

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

static void read_task_info(bp_process_facts *facts) {
    struct proc_taskinfo info;
    if (!bp_darwin_pidinfo(PROC_PIDTASKINFO, &info, (int)sizeof info)) {
        bp_facts_deny(facts, "counters", errno);
        return;
    }
    facts->thread_count = known_count(info.pti_threadnum);
    facts->major_faults = known_count(info.pti_pageins);
    facts->minor_faults = known_count((int64_t)info.pti_faults - info.pti_pageins);
}

static void read_storage(bp_process_facts *facts) {
    struct rusage_info_v2 usage;
    memset(&usage, 0, sizeof usage);
    if (proc_pid_rusage(getpid(), RUSAGE_INFO_V2, (rusage_info_t *)&usage) != 0) {
        bp_facts_deny(facts, "input and output", errno);
        return;
    }
    facts->read_bytes = known(usage.ri_diskio_bytesread);
    facts->written_bytes = known(usage.ri_diskio_byteswritten);
}

/* ru_maxrss is in bytes here, not in KiB. */
static void read_usage(bp_process_facts *facts) {
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

/* The limits under the names that they have on Linux, so that one search works for reports of both.
 * False when memory is short. */
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
static bool count_fds(bp_process_facts *facts) {
    errno = 0;
    int bytes = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, NULL, 0);
    int room = bytes / (int)sizeof(struct proc_fdinfo) + 32;
    if (bytes <= 0 || room > fd_max) {
        bp_facts_deny(facts, "open files", bytes <= 0 ? errno : E2BIG);
        return true;
    }
    struct proc_fdinfo *list = calloc((size_t)room, sizeof *list);
    if (list == NULL) {
        return false;
    }
    bytes = proc_pidinfo(getpid(), PROC_PIDLISTFDS, 0, list, room * (int)sizeof *list);
    if (bytes > 0) {
        facts->fd_count = known((uint64_t)bytes / sizeof *list);
    } else {
        bp_facts_deny(facts, "open files", errno);
    }
    free(list);
    return true;
}

bugpack_status bp_task_count_files(bp_task *task, uint64_t *ret_count, bugpack_error *error) {
    (void)task;
    bp_process_facts facts = {0};
    if (!count_fds(&facts)) {
        return bp_fail_memory(error, "count open files");
    }
    if (!facts.fd_count.known) {
        return bp_fail(error, facts.is_refused ? BUGPACK_ERR_DENIED : BUGPACK_ERR_IO,
                       "cannot count %s", facts.denied);
    }
    *ret_count = facts.fd_count.value;
    return BUGPACK_OK;
}

/* A copy of a path that may lack its NUL, or be empty; false when memory is short. */
static bool copy_path(const char *path, size_t capacity, char **ret_path) {
    *ret_path = path[0] != '\0' ? strndup(path, capacity) : NULL;
    return path[0] == '\0' || *ret_path != NULL;
}

static bool read_paths(bp_process_facts *facts) {
    char executable[PROC_PIDPATHINFO_MAXSIZE];
    errno = 0;
    int length = proc_pidpath(getpid(), executable, sizeof executable);
    if (length > 0 && (size_t)length <= sizeof executable) {
        if (!copy_path(executable, (size_t)length, &facts->executable)) {
            return false;
        }
    } else {
        bp_facts_deny(facts, "executable", errno);
    }
    struct proc_vnodepathinfo paths;
    if (!bp_darwin_pidinfo(PROC_PIDVNODEPATHINFO, &paths, (int)sizeof paths)) {
        bp_facts_deny(facts, "working directory", errno);
        return true;
    }
    return copy_path(paths.pvi_cdir.vip_path, sizeof paths.pvi_cdir.vip_path,
                     &facts->working_directory);
}

/* Takes the arguments, and only those, out of what the kernel copied. False without memory. */
static bool take_arguments(const char *memory, size_t memory_bytes, bp_process_facts *facts) {
    const char *arguments;
    size_t bytes;
    if (!bp_darwin_parse_procargs(memory, memory_bytes, &arguments, &bytes)) {
        bp_facts_note(facts, "command line", "the kernel's copy makes no sense");
        return true;
    }
    bp_buffer *line = &facts->command_line;
    if (bytes > command_line_max_bytes - 1) {
        bytes = command_line_max_bytes - 1;
        bp_facts_note(facts, "the rest of the command line", "over the limit of 1 MiB");
    }
    if (bytes > 0 && bp_buffer_append(line, arguments, bytes) != BUGPACK_OK) {
        return false;
    }
    bool is_ended = line->size == 0 || line->data[line->size - 1] == '\0';
    return is_ended || bp_buffer_append_char(line, '\0') == BUGPACK_OK;
}

/* With a buffer smaller than arguments and environment can be, the kernel copies their end. */
static bool read_command_line(bp_process_facts *facts) {
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
    if (sysctl((int[]){CTL_KERN, KERN_PROCARGS2, getpid()}, 3, memory, &bytes, NULL, 0) == 0) {
        enough_memory = take_arguments(memory, bytes, facts);
    } else {
        bp_facts_deny(facts, "command line", errno);
    }
    free(memory);
    return enough_memory;
}

bugpack_status bp_process_facts_read(bp_task *task, bp_process_facts *ret_facts,
                                     bugpack_error *error) {
    /* The thread that asks runs. */
    bp_process_facts facts = {.pid = getpid(),
                              .state = 'R',
                              .parent_pid = known((uint64_t)getppid()),
                              .uid = known(geteuid()),
                              .gid = known(getegid())};
    bp_buffer_init(&facts.command_line, command_line_max_bytes);
    memcpy(facts.name, task->name, sizeof facts.name);
    if (task->started_wall_ns != 0) {
        facts.started_wall_ns = known(task->started_wall_ns);
    }
    read_task_info(&facts);
    read_storage(&facts);
    read_usage(&facts);
    if (!read_limits(&facts) || !count_fds(&facts) || !read_paths(&facts) ||
        !read_command_line(&facts)) {
        bp_process_facts_release(&facts);
        return bp_fail_memory(error, "read the facts of a process");
    }
    *ret_facts = facts;
    return BUGPACK_OK;
}
