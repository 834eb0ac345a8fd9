/* The files of one process, thread or control group, and what an unreadable one means. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/lock.h"
#include "machine/machine_private.h"
#include "platform/linux/files.h"
#include "platform/linux/machine_text.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/thread_reader.h"

/* As much of the arguments as one usually wants to see; process.json has all of one process. */
static const size_t command_line_bytes_max = 4096;

static bp_machine_cause cause_of(int system_errno) {
    switch (system_errno) {
    case EACCES:
    case EPERM:
        return BP_MACHINE_CAUSE_DENIED;
    case ENOENT:
        return BP_MACHINE_CAUSE_MISSING;
    case ESRCH:
        return BP_MACHINE_CAUSE_VANISHED;
    case ENODATA:
        return BP_MACHINE_CAUSE_DISABLED;
    case EBADMSG:
        return BP_MACHINE_CAUSE_MALFORMED;
    default:
        return BP_MACHINE_CAUSE_OTHER;
    }
}

static void read_cgroup(bp_machine_reader *reader, bp_machine_thread *thread) {
    const char *path;
    size_t path_bytes;
    ssize_t length =
        bp_proc_read_at(reader->proc_fd, reader->text, BP_THREAD_TEXT_BYTES,
                        "%" PRIu64 "/task/%" PRIu64 "/cgroup", thread->tgid, thread->read.tid);
    int result = length < 0 ? errno : 0;
    if (length > 0 && bp_proc_find_cgroup(reader->text, (size_t)length, &path, &path_bytes)) {
        thread->cgroup = bp_machine_cgroups_count(reader->cgroups, path, path_bytes);
        result = thread->cgroup == NULL ? errno : 0;
    }
    if (result != 0 && cause_of(result) == BP_MACHINE_CAUSE_OTHER) {
        bp_machine_summary_error(&reader->tally, result)->file_count++;
    }
}

/* The counters that the first pass has read, if this is still the same thread, or why there are
 * none. Nobody has looked for those of a thread that began later. */
static void take_heap(bp_machine_reader *reader, const bp_machine_process *process,
                      bp_machine_thread *thread) {
    bp_thread_reading *read = &thread->read;
    bp_thread_heap key = {.tid = read->tid};
    const bp_thread_heap *heap =
        process->heap_count == 0
            ? NULL
            : bsearch(&key, process->heap, process->heap_count, sizeof key, bp_array_compare_u64);
    if (process->heap_failure != BP_HEAP_FAILURE_NONE) {
        thread->heap_failure = bp_heap_failure_name(process->heap_failure);
    } else if (heap != NULL && heap->birth == read->stat.start_ticks && heap->is_measured) {
        read->counters[BP_COUNTER_ALLOCATED] = heap->allocated_bytes;
        read->counters[BP_COUNTER_DEALLOCATED] = heap->deallocated_bytes;
        read->measured |= 1u << BP_GROUP_HEAP;
        reader->tally.heap_thread_count++;
    } else if (heap != NULL && heap->birth == read->stat.start_ticks) {
        thread->heap_failure = bp_heap_failure_name(heap->failure);
        reader->tally.heap_unread_count++;
    }
}

/* The name of a thread whose stat cannot be read. 0 or an errno. */
static int read_name(const bp_thread_reader *files, bp_thread_reading *thread) {
    char name[sizeof thread->stat.name];
    ssize_t length = bp_proc_read_at(files->dir_fd, name, sizeof name, "%s%" PRIu64 "/comm",
                                     files->task, thread->tid);
    if (length < 0) {
        return errno;
    }
    (void)snprintf(thread->stat.name, sizeof name, "%.*s",
                   (int)(length - (length > 0 && name[length - 1] == '\n')), name);
    return 0;
}

int bp_machine_read_thread(bp_machine_reader *reader, const bp_machine_process *process,
                           uint64_t tid, bp_machine_thread *ret_thread) {
    static const uint32_t groups =
        ((1u << BP_MACHINE_GROUP_COUNT) - 1) & ~(1u << BP_GROUP_MEMORY | 1u << BP_GROUP_HEAP);
    char task[32];
    int result = 0;
    (void)snprintf(task, sizeof task, "%" PRIu64 "/task/", process->tgid);
    const bp_thread_reader files = {.dir_fd = reader->proc_fd,
                                    .task = task,
                                    .ticks_per_sec = reader->ticks_per_sec,
                                    .text = reader->text,
                                    .text_bytes = BP_THREAD_TEXT_BYTES};
    /* Memory is of the whole process, so read for its first thread only. */
    uint32_t memory = tid == process->tgid ? 1u << BP_GROUP_MEMORY : 0;
    *ret_thread = (bp_machine_thread){.tgid = process->tgid, .is_self = process->is_self};
    bp_thread_reading *read = &ret_thread->read;
    memcpy(ret_thread->process_name, process->name, sizeof ret_thread->process_name);
    bp_thread_read(&files, tid, groups | memory | 1u << BP_GROUP_AFFINITY, read);
    if (!bp_thread_has(read, BP_GROUP_STAT)) {
        read->stat.is_kernel_thread = process->is_kernel_thread;
        result = read_name(&files, read);
    }
    if (result != 0) {
        bp_thread_reading_release(read);
        return result;
    }
    /* Groups are counted by cause; a file is an error of its own if the cause is none of these. */
    for (bp_thread_group group = BP_GROUP_STAT; group < BP_MACHINE_GROUP_COUNT; group++) {
        bp_machine_cause cause = cause_of(read->errnos[group]);
        bool has_file = group <= BP_GROUP_SCHED || group == BP_GROUP_MEMORY;
        reader->tally.unread[group][cause] += read->errnos[group] != 0;
        if (read->errnos[group] != 0 && cause == BP_MACHINE_CAUSE_OTHER && has_file) {
            bp_machine_summary_error(&reader->tally, read->errnos[group])->file_count++;
        }
    }
    read_cgroup(reader, ret_thread);
    take_heap(reader, process, ret_thread);
    return 0;
}

static void fail_heap(bp_machine_reader *reader, bp_machine_process *process,
                      bp_heap_failure failure, int system_errno, const char *reason) {
    bp_machine_summary *tally = &reader->tally;
    process->heap_failure = failure;
    if (bp_heap_failure_is_absence(failure, system_errno)) {
        tally->heap_absent_count++;
    } else if (failure != BP_HEAP_FAILURE_PID_MISSING) {
        tally->heap_processes[failure]++;
        (void)snprintf(tally->heap_reasons[failure], sizeof tally->heap_reasons[failure], "%.255s",
                       reason);
        if (bp_heap_failure_is_trouble(failure, system_errno)) {
            bp_machine_summary_error(tally, system_errno)->file_count++;
        }
    }
}

/* Takes the counters of a jemalloc's threads, or notes why there are none. */
static void probe_heap(bp_machine_reader *reader, bp_machine_process *process) {
    const bp_heap_plan plan = BP_HEAP_PLAN_INIT;
    bp_thread_heap_reading reading = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_heap_probe(reader->prober, (pid_t)process->tgid, &plan, &reading, &error);
    if (status != BUGPACK_OK) {
        int system_errno = error.system_errno != 0 ? error.system_errno : ENOMEM;
        fail_heap(reader, process, BP_HEAP_FAILURE_SYSTEM, system_errno, error.message);
    } else if (reading.failure != BP_HEAP_FAILURE_NONE) {
        fail_heap(reader, process, reading.failure, reading.system_errno, reading.reason);
    } else {
        process->is_heap_measured = true;
        process->heap = reading.snapshots[0].threads;
        process->heap_count = reading.snapshots[0].thread_count;
        reading.snapshots[0].threads = NULL;
        reading.snapshots[0].thread_count = 0;
        reader->tally.heap_processes[BP_HEAP_FAILURE_NONE]++;
    }
    bp_thread_heap_reading_release(&reading);
}

/* A kernel thread has no arguments; those of a process that ends are gone. */
static void read_command_line(bp_machine_reader *reader, int process_fd, const bp_proc_stat *stat,
                              bp_machine_process *process) {
    ssize_t length =
        bp_proc_read_small(process_fd, "cmdline", reader->text, command_line_bytes_max + 1);
    if (length < 0 && !bp_proc_is_gone(errno)) {
        bp_machine_summary_error(&reader->tally, errno)->file_count++;
    }
    if (length <= 0) {
        return;
    }
    process->is_command_line_cut = (size_t)length > command_line_bytes_max;
    size_t kept = process->is_command_line_cut ? command_line_bytes_max : (size_t)length;
    if (!process->is_command_line_cut && reader->text[kept - 1] == '\0') {
        uint64_t count = reader->has_our_ids
                             ? bp_proc_read_argument_count((pid_t)process->tgid, stat->stack_start)
                             : 0;
        kept = bp_proc_trim_title(reader->text, kept, count);
    }
    process->command_line = malloc(kept);
    if (process->command_line == NULL) {
        bp_machine_summary_error(&reader->tally, ENOMEM)->file_count++;
        return;
    }
    memcpy(process->command_line, reader->text, kept);
    process->command_line_bytes = kept;
}

int bp_machine_read_process(bp_machine_reader *reader, bp_machine_process *process) {
    bp_proc_stat stat = {.thread_count = 1};
    int process_fd =
        bp_proc_open_at(reader->proc_fd, O_PATH | O_DIRECTORY, "%" PRIu64, process->tgid);
    int result = process_fd < 0 ? errno : bp_proc_list_read(process_fd, "task", &process->threads);
    if (result == 0) {
        bp_proc_list_sort(&process->threads);
        result = bp_proc_read_stat(process_fd, &stat, "stat");
    }
    if (result != 0 && result != EBADMSG) {
        goto out;
    }
    result = 0;
    memcpy(process->name, stat.name, sizeof process->name);
    process->is_kernel_thread = stat.is_kernel_thread;
    process->is_self = process->tgid == reader->self_tgid;
    if (bp_proc_has_process_ended(&stat) || process->is_kernel_thread) {
        goto out;
    }
    read_command_line(reader, process_fd, &stat, process);
    if (reader->prober != NULL && process->is_self) {
        process->heap_failure = BP_HEAP_FAILURE_SELF;
    } else if (reader->prober != NULL) {
        probe_heap(reader, process);
    }
out:
    bp_file_close(process_fd);
    return result;
}

/* --- control groups -------------------------------------------------------------------------- */

enum {
    ns_per_us = 1000,
    bucket_count = 4096,
    cgroup_max = 65536,
    path_bytes_max = 4096,
    figure_bytes_max = 4096
};

typedef struct bp_machine_cgroup_node {
    struct bp_machine_cgroup_node *next;
    uint64_t thread_count;
    char path[]; /* with its NUL */
} node;

bool bp_machine_cgroups_init(bp_machine_cgroups *cgroups) {
    cgroups->count = 0;
    cgroups->buckets = calloc(bucket_count, sizeof *cgroups->buckets);
    bp_lock_init(&cgroups->lock, BP_LOCK_CGROUPS);
    return cgroups->buckets != NULL;
}

void bp_machine_cgroups_release(bp_machine_cgroups *cgroups) {
    for (size_t i = 0; i < bucket_count; i++) {
        while (cgroups->buckets[i] != NULL) {
            node *first = cgroups->buckets[i];
            cgroups->buckets[i] = first->next;
            free(first);
        }
    }
    free(cgroups->buckets);
    bp_lock_destroy(&cgroups->lock);
}

const char *bp_machine_cgroups_count(bp_machine_cgroups *cgroups, const char *path,
                                     size_t path_bytes) {
    if (path_bytes >= path_bytes_max || memchr(path, '\0', path_bytes) != NULL) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    bp_lock_acquire(&cgroups->lock);
    node **at = &cgroups->buckets[XXH3_64bits(path, path_bytes) % bucket_count];
    while (*at != NULL &&
           (strlen((*at)->path) != path_bytes || memcmp((*at)->path, path, path_bytes) != 0)) {
        at = &(*at)->next;
    }
    if (*at == NULL && cgroups->count < cgroup_max) {
        *at = calloc(1, sizeof **at + path_bytes + 1);
        if (*at != NULL) {
            memcpy((*at)->path, path, path_bytes);
            cgroups->count++;
        }
    }
    node *found = *at;
    bool is_full = cgroups->count == cgroup_max;
    if (found != NULL) {
        found->thread_count++;
    }
    bp_lock_release(&cgroups->lock);
    errno = is_full ? E2BIG : ENOMEM;
    return found != NULL ? found->path : NULL;
}

/* Whether a file or directory of a cgroup is not there, or has nothing to say: a controller is off,
 * or the cgroup has ended (ENODEV, kernfs_get_active in fs/kernfs/file.c). */
static bool is_absent(int system_errno) {
    return system_errno == ENOENT || system_errno == ENODEV || system_errno == EOPNOTSUPP;
}

/* A directory of figures, and where failures are counted. */
typedef struct place {
    int fd; /* -1: none */
    bp_machine_summary *summary;
} place;

static void count_place_failure(const place *from) {
    if (!is_absent(errno)) {
        bp_machine_summary_error(from->summary, errno)->file_count++;
    }
}

/* Reads one small file; 0 bytes when it is not there, or too long. */
static size_t read_place(const place *from, const char *name, char text[figure_bytes_max]) {
    ssize_t count = from->fd < 0 ? 0 : bp_proc_read_small(from->fd, name, text, figure_bytes_max);
    if (count < 0) {
        count_place_failure(from);
    }
    return count > 0 && count < figure_bytes_max ? (size_t)count : 0;
}

/* Version 1 writes -1 or a huge number where there is no limit. */
static bool is_unlimited_v1(const char *text, size_t length, const bp_machine_figure *figure) {
    static const uint64_t unlimited = (uint64_t)1 << 62;
    bool is_minus_one = length == 3 && memcmp(text, "-1\n", 3) == 0;
    return is_minus_one || (figure->is_known && figure->value >= unlimited);
}

/* A file with one number. */
static void read_figure(const place *from, const char *name, bool is_limit_v1, uint64_t scale,
                        bp_machine_figure *figure) {
    char text[figure_bytes_max] = "";
    bp_machine_figure read = {.is_known = false};
    size_t length = read_place(from, name, text);
    (void)bp_machine_parse_figure(text, length, &read);
    if (is_limit_v1 && is_unlimited_v1(text, length, &read)) {
        read = (bp_machine_figure){.is_known = true, .is_unlimited = true};
    }
    if (read.is_known && read.value <= UINT64_MAX / scale) {
        read.value *= scale;
        *figure = read;
    }
}

static void read_pressure_files(const place *from, const char *const names[BP_PRESSURE_COUNT],
                                bp_pressure pressure[BP_PRESSURE_COUNT]) {
    char text[figure_bytes_max];
    for (size_t i = 0; i < BP_PRESSURE_COUNT; i++) {
        size_t length = read_place(from, names[i], text);
        (void)bp_machine_parse_pressure(text, length, &pressure[i]);
    }
}

void bp_machine_read_pressure(int proc_fd, bp_pressure pressure[BP_PRESSURE_COUNT],
                              bp_machine_summary *summary) {
    static const char *const names[] = {"pressure/cpu", "pressure/memory", "pressure/io",
                                        "pressure/irq"};
    read_pressure_files(&(place){proc_fd, summary}, names, pressure);
}

/* Where the figures of both versions are. Version 2 has one directory for all; version 1 has a
 * hierarchy for each controller. */
static const struct figure_row {
    bp_cgroup_figure figure;
    const char *controller; /* NULL: version 2 */
    const char *file;
    const char *key; /* NULL: the file is the number */
    bool is_limit_v1;
    uint64_t scale;
} rows[] = {{BP_CGROUP_CPU_USAGE, NULL, "cpu.stat", "usage_usec", false, ns_per_us},
            {BP_CGROUP_CPU_USER, NULL, "cpu.stat", "user_usec", false, ns_per_us},
            {BP_CGROUP_CPU_SYSTEM, NULL, "cpu.stat", "system_usec", false, ns_per_us},
            {BP_CGROUP_CPU_PERIODS, NULL, "cpu.stat", "nr_periods", false, 1},
            {BP_CGROUP_CPU_THROTTLED_PERIODS, NULL, "cpu.stat", "nr_throttled", false, 1},
            {BP_CGROUP_CPU_THROTTLED, NULL, "cpu.stat", "throttled_usec", false, ns_per_us},
            {BP_CGROUP_MEMORY_CURRENT, NULL, "memory.current", NULL, false, 1},
            {BP_CGROUP_MEMORY_PEAK, NULL, "memory.peak", NULL, false, 1},
            {BP_CGROUP_MEMORY_HIGH, NULL, "memory.high", NULL, false, 1},
            {BP_CGROUP_MEMORY_MAX, NULL, "memory.max", NULL, false, 1},
            {BP_CGROUP_MEMORY_SWAP, NULL, "memory.swap.current", NULL, false, 1},
            {BP_CGROUP_MEMORY_OOM_KILLS, NULL, "memory.events", "oom_kill", false, 1},
            {BP_CGROUP_PIDS_CURRENT, NULL, "pids.current", NULL, false, 1},
            {BP_CGROUP_PIDS_PEAK, NULL, "pids.peak", NULL, false, 1},
            {BP_CGROUP_PIDS_MAX, NULL, "pids.max", NULL, false, 1},
            {BP_CGROUP_CPU_USAGE, "cpuacct", "cpuacct.usage", NULL, false, 1},
            {BP_CGROUP_CPU_QUOTA, "cpu", "cpu.cfs_quota_us", NULL, true, ns_per_us},
            {BP_CGROUP_CPU_PERIOD, "cpu", "cpu.cfs_period_us", NULL, false, ns_per_us},
            {BP_CGROUP_CPU_PERIODS, "cpu", "cpu.stat", "nr_periods", false, 1},
            {BP_CGROUP_CPU_THROTTLED_PERIODS, "cpu", "cpu.stat", "nr_throttled", false, 1},
            {BP_CGROUP_CPU_THROTTLED, "cpu", "cpu.stat", "throttled_time", false, 1},
            {BP_CGROUP_MEMORY_CURRENT, "memory", "memory.usage_in_bytes", NULL, false, 1},
            {BP_CGROUP_MEMORY_PEAK, "memory", "memory.max_usage_in_bytes", NULL, false, 1},
            {BP_CGROUP_MEMORY_MAX, "memory", "memory.limit_in_bytes", NULL, true, 1},
            {BP_CGROUP_MEMORY_OOM_KILLS, "memory", "memory.oom_control", "oom_kill", false, 1},
            {BP_CGROUP_PIDS_CURRENT, "pids", "pids.current", NULL, false, 1},
            {BP_CGROUP_PIDS_MAX, "pids", "pids.max", NULL, false, 1}};

static place open_below(const place *from, const char *top, const char *path) {
    char relative[path_bytes_max + 32]; /* a path is shorter, see bp_machine_cgroups_count */
    (void)snprintf(relative, sizeof relative, "%s%s", top, path);
    place below = {.fd = openat(from->fd, relative, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC),
                   .summary = from->summary};
    if (below.fd < 0) {
        count_place_failure(from);
    }
    return below;
}

/* What only version 2 has, beside its rows. */
static void read_unified(const place *from, bp_machine_cgroup *cgroup) {
    static const char *const pressure_names[] = {"cpu.pressure", "memory.pressure", "io.pressure",
                                                 "irq.pressure"};
    char text[figure_bytes_max];
    size_t length = read_place(from, "cpu.max", text);
    (void)bp_machine_parse_cpu_max(text, length, &cgroup->figures[BP_CGROUP_CPU_QUOTA],
                                   &cgroup->figures[BP_CGROUP_CPU_PERIOD]);
    read_pressure_files(from, pressure_names, cgroup->pressure);
}

/* Whether the process of these lines is in the group of that path, or in one below it. */
static bool is_in(const char *lines, size_t lines_bytes, const char *controller, const char *path) {
    const char *own;
    size_t own_bytes, bytes = strlen(path);
    bytes -= bytes == 1; /* "/" */
    return lines == NULL ||
           (bp_proc_find_controller(lines, lines_bytes, controller, &own, &own_bytes) &&
            own_bytes >= bytes && memcmp(own, path, bytes) == 0 &&
            (own_bytes == bytes || own[bytes] == '/'));
}

static void read_figures(const place *top, bool is_unified, const char *lines, size_t lines_bytes,
                         bp_machine_cgroup *cgroup) {
    const char *open_controller = NULL;
    place from = {.fd = -1, .summary = top->summary};
    if (is_unified) {
        from = open_below(top, ".", cgroup->path);
    }
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if ((rows[i].controller == NULL) != is_unified) {
            continue;
        }
        if (rows[i].controller != open_controller) {
            bp_file_close(from.fd);
            from.fd = -1;
            open_controller = rows[i].controller;
            if (is_in(lines, lines_bytes, open_controller, cgroup->path)) {
                from = open_below(top, open_controller, cgroup->path);
            }
        }
        bp_machine_figure *figure = &cgroup->figures[rows[i].figure];
        if (rows[i].key == NULL) {
            read_figure(&from, rows[i].file, rows[i].is_limit_v1, rows[i].scale, figure);
        } else {
            char text[figure_bytes_max];
            size_t length = read_place(&from, rows[i].file, text);
            (void)bp_machine_find_figure(text, length, rows[i].key, rows[i].scale, figure);
        }
    }
    if (is_unified) {
        read_unified(&from, cgroup);
    }
    bp_file_close(from.fd);
}

/* From outside a cgroup namespace a path may lead above its root: "/../other". */
static bool leads_up(const char *path) {
    for (const char *at = strstr(path, "/.."); at != NULL; at = strstr(at + 1, "/..")) {
        if (at[3] == '\0' || at[3] == '/') {
            return true;
        }
    }
    return false;
}

static int compare_paths(const void *one, const void *other) {
    const bp_machine_cgroup *left = one;
    const bp_machine_cgroup *right = other;
    return strcmp(left->path, right->path);
}

void bp_machine_cgroup_read(int cgroup_fd, const char *lines, size_t lines_bytes,
                            bp_machine_cgroup *cgroup, bp_machine_summary *summary) {
    const place top = {cgroup_fd, summary};
    if (cgroup_fd >= 0 && !leads_up(cgroup->path)) {
        bool is_unified = faccessat(cgroup_fd, "cgroup.controllers", F_OK, 0) == 0;
        read_figures(&top, is_unified, lines, lines_bytes, cgroup);
    }
}

bool bp_machine_cgroups_read(const bp_machine_cgroups *cgroups, int cgroup_fd,
                             bp_machine_cgroup **ret_list, bp_machine_summary *summary) {
    size_t count = 0;
    bp_machine_cgroup *list = calloc(cgroups->count + 1, sizeof *list);
    if (list == NULL) {
        return false;
    }
    for (size_t i = 0; i < bucket_count; i++) {
        for (node *at = cgroups->buckets[i]; at != NULL; at = at->next) {
            list[count].path = at->path;
            list[count++].thread_count = at->thread_count;
        }
    }
    qsort(list, count, sizeof *list, compare_paths);
    for (size_t i = 0; i < count; i++) {
        bp_machine_cgroup_read(cgroup_fd, NULL, 0, &list[i], summary);
    }
    *ret_list = list;
    return true;
}
