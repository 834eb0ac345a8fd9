/* The control groups of the machine, and the pressure on it and on each of them. */
#include <errno.h>
#include <fcntl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "machine/machine_private.h"
#include "platform/linux/files.h"
#include "platform/linux/machine_text.h"
#include "platform/linux/proc_text.h"

enum { ns_per_us = 1000, cgroup_max = 65536, path_bytes_max = 4096, figure_bytes_max = 4096 };

typedef struct bp_machine_cgroup_node {
    struct bp_machine_cgroup_node *next;
    uint64_t thread_count;
    char path[]; /* with its NUL */
} node;

static int compare_nodes(const void *one, const void *other) {
    return strcmp(((const node *)one)->path, ((const node *)other)->path);
}

void bp_machine_cgroups_release(bp_machine_cgroups *cgroups) {
    tdestroy(cgroups->root, free);
}

const char *bp_machine_cgroups_count(bp_machine_cgroups *cgroups, const char *path,
                                     size_t path_bytes) {
    if (path_bytes >= path_bytes_max || memchr(path, '\0', path_bytes) != NULL) {
        errno = ENAMETOOLONG;
        return NULL;
    }
    node *made = calloc(1, sizeof *made + path_bytes + 1);
    if (made == NULL) {
        return NULL;
    }
    memcpy(made->path, path, path_bytes);
    bool is_full = cgroups->count == cgroup_max;
    node **found = is_full ? tfind(made, &cgroups->root, compare_nodes)
                           : tsearch(made, &cgroups->root, compare_nodes);
    bool is_new = found != NULL && *found == made;
    if (is_new) {
        made->next = cgroups->first;
        cgroups->first = made;
        cgroups->count++;
    } else {
        free(made);
    }
    if (found == NULL) {
        errno = is_full ? E2BIG : ENOMEM;
        return NULL;
    }
    (*found)->thread_count++;
    return (*found)->path;
}

/* True if a file or directory of a cgroup is not there, or has nothing to say: a controller is off,
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
            {BP_CGROUP_MEMORY_FILE, NULL, "memory.stat", "file", false, 1},
            {BP_CGROUP_MEMORY_SHMEM, NULL, "memory.stat", "shmem", false, 1},
            {BP_CGROUP_MEMORY_SWAP, NULL, "memory.swap.current", NULL, false, 1},
            {BP_CGROUP_MEMORY_SWAP_MAX, NULL, "memory.swap.max", NULL, false, 1},
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
            {BP_CGROUP_MEMORY_FILE, "memory", "memory.stat", "total_cache", false, 1},
            {BP_CGROUP_MEMORY_SHMEM, "memory", "memory.stat", "total_shmem", false, 1},
            {BP_CGROUP_MEMORY_SWAP, "memory", "memory.stat", "total_swap", false, 1},
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

/* Reads the facts that only version 2 has. */
static void read_unified(const place *from, bp_machine_cgroup *cgroup) {
    static const char *const pressure_names[] = {"cpu.pressure", "memory.pressure", "io.pressure",
                                                 "irq.pressure"};
    char text[figure_bytes_max];
    size_t length = read_place(from, "cpu.max", text);
    (void)bp_machine_parse_cpu_max(text, length, &cgroup->figures[BP_CGROUP_CPU_QUOTA],
                                   &cgroup->figures[BP_CGROUP_CPU_PERIOD]);
    read_pressure_files(from, pressure_names, cgroup->pressure);
}

/* True if the process of these lines is in the group of that path, or in one below it. */
static bool is_in(const char *lines, size_t lines_bytes, const char *controller, const char *path) {
    const char *own;
    size_t own_bytes, bytes = strlen(path);
    bytes -= bytes == 1; /* "/" */
    return lines == NULL ||
           (bp_proc_find_cgroup(lines, lines_bytes, controller, &own, &own_bytes) &&
            own_bytes >= bytes && memcmp(own, path, bytes) == 0 &&
            (own_bytes == bytes || own[bytes] == '/'));
}

static void read_figures(const place *top, bool is_unified, const char *lines, size_t lines_bytes,
                         bp_machine_cgroup *cgroup) {
    const char *open_controller = NULL, *read_file = NULL;
    char text[figure_bytes_max];
    size_t length = 0;
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
            read_file = NULL;
            open_controller = rows[i].controller;
            if (is_in(lines, lines_bytes, open_controller, cgroup->path)) {
                from = open_below(top, open_controller, cgroup->path);
            }
        }
        bp_machine_figure *figure = &cgroup->figures[rows[i].figure];
        if (rows[i].key == NULL) {
            read_figure(&from, rows[i].file, rows[i].is_limit_v1, rows[i].scale, figure);
            continue;
        }
        if (read_file == NULL || strcmp(read_file, rows[i].file) != 0) {
            length = read_place(&from, rows[i].file, text);
            read_file = rows[i].file;
        }
        (void)bp_machine_find_figure(text, length, rows[i].key, rows[i].scale, figure);
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

/* The present figures of a group, whose path is set. `lines`, if not NULL, is /proc's `cgroup` of a
 * process: of version 1 only those of controllers whose group of the process is this one or below
 * it. */
static void read_cgroup(int cgroup_fd, const char *lines, size_t lines_bytes,
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
    for (node *at = cgroups->first; at != NULL; at = at->next) {
        list[count].path = at->path;
        list[count++].thread_count = at->thread_count;
    }
    qsort(list, count, sizeof *list, compare_paths);
    for (size_t i = 0; i < count; i++) {
        read_cgroup(cgroup_fd, NULL, 0, &list[i], summary);
    }
    *ret_list = list;
    return true;
}

/* The groups that a process is in. */
struct membership {
    const char *lines; /* of its `cgroup` */
    size_t lines_bytes;
    int cgroup_fd;
    bp_system *system;
    bp_machine_summary *summary;
};

/* Appends a control group, if anything is known of it and it is not there. False without memory. */
static bool add_cgroup(const struct membership *of, const char *path, size_t path_bytes) {
    bp_machine_cgroup cgroup = {.path = strndup(path, path_bytes)};
    if (cgroup.path == NULL) {
        return false;
    }
    bool is_new = true, is_known = false;
    for (size_t i = 0; i < of->system->cgroup_count; i++) {
        is_new = is_new && strcmp(of->system->cgroups[i].path, cgroup.path) != 0;
    }
    if (is_new) {
        read_cgroup(of->cgroup_fd, of->lines, of->lines_bytes, &cgroup, of->summary);
    }
    for (size_t i = 0; i < BP_CGROUP_FIGURE_COUNT; i++) {
        is_known = is_known || cgroup.figures[i].is_known;
    }
    if (is_known) {
        of->system->cgroups[of->system->cgroup_count++] = cgroup;
    } else {
        free(cgroup.path);
    }
    return true;
}

/* From that group up to the root: each may have a limit. False without memory. */
static bool add_cgroups(const struct membership *of, const char *path, size_t bytes) {
    bool has_memory = true;
    bool is_path = bytes > 0 && bytes < path_bytes_max && path[0] == '/';
    while (is_path && has_memory && of->system->cgroup_count < BP_SYSTEM_CGROUP_MAX) {
        has_memory = add_cgroup(of, path, bytes);
        if (bytes == 1) {
            break;
        }
        while (bytes > 1 && path[bytes - 1] != '/') {
            bytes--;
        }
        bytes -= bytes > 1 ? 1 : 0;
    }
    return has_memory;
}

bool bp_machine_cgroups_of_process(const char *lines, size_t lines_bytes, bp_system *system,
                                   bp_machine_summary *summary) {
    /* The process is in one group, and of version 1 perhaps in another for each controller. */
    static const char *const controllers[] = {"memory", "cpu", "cpuacct", "pids"};
    const char *path;
    size_t bytes;
    if (!bp_proc_find_cgroup(lines, lines_bytes, NULL, &path, &bytes)) {
        return true;
    }
    const struct membership of = {.lines = lines,
                                  .lines_bytes = lines_bytes,
                                  .cgroup_fd =
                                      open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC),
                                  .system = system,
                                  .summary = summary};
    bool has_memory = of.cgroup_fd < 0 || add_cgroups(&of, path, bytes);
    for (size_t i = 0; of.cgroup_fd >= 0 && i < sizeof controllers / sizeof controllers[0]; i++) {
        if (has_memory && bp_proc_find_cgroup(lines, lines_bytes, controllers[i], &path, &bytes)) {
            has_memory = add_cgroups(&of, path, bytes);
        }
    }
    bp_file_close(of.cgroup_fd);
    return has_memory;
}

bool bp_machine_cgroups_again(const bp_system *before, bp_system *system,
                              bp_machine_summary *summary) {
    int cgroup_fd = open("/sys/fs/cgroup", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool has_memory = true;
    for (size_t i = 0; cgroup_fd >= 0 && has_memory && i < before->cgroup_count; i++) {
        const bp_machine_cgroup *was = &before->cgroups[i];
        bp_machine_cgroup *now = &system->cgroups[i];
        *now = (bp_machine_cgroup){.path = strdup(was->path)};
        has_memory = now->path != NULL;
        if (has_memory) {
            read_cgroup(cgroup_fd, NULL, 0, now, summary);
            system->cgroup_count = i + 1;
        }
        /* A group of version 1 may be of other processes where a controller was not known. */
        for (size_t k = 0; k < BP_CGROUP_FIGURE_COUNT; k++) {
            now->figures[k].is_known = now->figures[k].is_known && was->figures[k].is_known;
        }
    }
    bp_file_close(cgroup_fd);
    return has_memory;
}
