#include "machine/system.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "machine/machine_private.h"
#include "platform/linux/files.h"
#include "platform/linux/machine_text.h"
#include "platform/linux/proc_text.h"
#include "platform/linux/system_text.h"
#include "platform/linux/thread_text.h"

static const size_t mounts_bytes_max = (size_t)1 << 20;

/* Opens a regular file of a root that belongs to somebody else, as a container's. -1 with errno. */
static int system_open(int root_fd, const char *path) {
    int path_fd = bp_open_below(root_fd, path, O_PATH);
    return path_fd < 0 ? -1 : bp_reopen_regular(path_fd);
}

enum { text_bytes_max = 16384, path_bytes_max = 4096 };

struct reader {
    const bp_system_plan *plan;
    int process_fd; /* /proc/<pid>, or -1 */
    int root_fd;    /* the root directory of the process, or ours; or -1 */
    bool has_root;  /* the former */
    bp_machine_summary summary;
    bp_system system;
    char text[text_bytes_max];
};

/* A file that the system does not have, or that a process that has ended had, is no loss. */
static bool is_absence(int system_errno) {
    return system_errno == ENOENT || system_errno == ESRCH || system_errno == ENOTDIR ||
           system_errno == ENOSYS || system_errno == EOPNOTSUPP;
}

static void note_unread(struct reader *reader, int system_errno) {
    reader->system.unread_count++;
    reader->system.unread_errno = system_errno;
}

/* The length; 0 where there is none. */
static size_t read_text(struct reader *reader, int dir_fd, const char *path) {
    ssize_t length = bp_proc_read_small(dir_fd, path, reader->text, text_bytes_max);
    if (length < 0 && !is_absence(errno)) {
        note_unread(reader, errno);
    }
    return length > 0 ? (size_t)length : 0;
}

/* Where there is no openat2, or a filter of system calls refuses it, no file is absent. */
static size_t read_in_root(struct reader *reader, const char *path) {
    int fd = reader->root_fd < 0 ? -1 : system_open(reader->root_fd, path);
    if (fd < 0 && reader->root_fd >= 0 && (errno == ENOSYS || !is_absence(errno))) {
        note_unread(reader, errno);
    }
    int64_t length = fd < 0 ? 0 : bp_file_read_range(fd, reader->text, text_bytes_max, 0);
    bp_file_close(fd);
    return length > 0 ? (size_t)length : 0;
}

static void read_kernel(struct reader *reader) {
    bp_system *system = &reader->system;
    struct utsname names;
    if (uname(&names) == 0) {
        (void)snprintf(system->kernel_name, sizeof system->kernel_name, "%s", names.sysname);
        (void)snprintf(system->kernel_release, sizeof system->kernel_release, "%s", names.release);
        (void)snprintf(system->kernel_version, sizeof system->kernel_version, "%s", names.version);
        (void)snprintf(system->architecture, sizeof system->architecture, "%s", names.machine);
        if (reader->plan->with_hostname) {
            (void)snprintf(system->hostname, sizeof system->hostname, "%s", names.nodename);
        }
    }
    uint64_t wall_ns = bp_clock_wall_ns();
    system->uptime_ns = bp_clock_read_ns(CLOCK_BOOTTIME);
    system->boot_wall_ns = wall_ns > system->uptime_ns ? wall_ns - system->uptime_ns : 0;
}

static bp_known_uint count_cpus(const char *text, size_t length) {
    bp_cpu_list list;
    bp_known_uint count = {.known = bp_cpu_list_parse(text, length, &list)};
    for (size_t i = 0; count.known && i < sizeof list.bits / sizeof list.bits[0]; i++) {
        count.value += (uint64_t)__builtin_popcountll(list.bits[i]);
    }
    return count;
}

/* The CPUs of the process are a line of its status: "Cpus_allowed_list:\t0-3". */
static void read_usable_cpus(struct reader *reader) {
    static const char key[] = "\nCpus_allowed_list:\t";
    size_t length = read_text(reader, reader->process_fd, "status");
    const char *at = memmem(reader->text, length, key, sizeof key - 1);
    if (at != NULL) {
        at += sizeof key - 1;
        size_t left = length - (size_t)(at - reader->text);
        const char *newline = memchr(at, '\n', left);
        reader->system.cpu_usable_count =
            count_cpus(at, newline == NULL ? left : (size_t)(newline - at));
    }
}

static void read_cpus(struct reader *reader) {
    bp_system *system = &reader->system;
    size_t length = read_text(reader, AT_FDCWD, "/sys/devices/system/cpu/possible");
    system->cpu_count = count_cpus(reader->text, length);
    length = read_text(reader, AT_FDCWD, "/sys/devices/system/cpu/online");
    system->cpu_online_count = count_cpus(reader->text, length);
    length = read_text(reader, AT_FDCWD, "/proc/cpuinfo");
    (void)bp_cpu_model_find(reader->text, length, system->cpu_model, sizeof system->cpu_model);
}

bp_known_uint bp_system_oom_kills(void) {
    char text[text_bytes_max];
    bp_machine_figure kills = {.is_known = false};
    ssize_t length = bp_proc_read_small(AT_FDCWD, "/proc/vmstat", text, sizeof text);
    bool is_known =
        length > 0 && bp_machine_find_figure(text, (size_t)length, "oom_kill", 1, &kills);
    return (bp_known_uint){is_known, kills.value};
}

static void read_memory(struct reader *reader) {
    bp_system *system = &reader->system;
    bp_known_uint before = reader->plan->oom_kills_before;
    if (before.known) {
        system->oom_kills = bp_system_oom_kills();
        system->oom_kills.value -= before.value;
    }
    size_t length = read_text(reader, AT_FDCWD, "/proc/meminfo");
    for (size_t i = 0; i < BP_SYSTEM_MEMORY_COUNT; i++) {
        system->memory[i].known = bp_proc_find_number(reader->text, length, bp_system_memory_key(i),
                                                      0, &system->memory[i].value);
    }
    length = read_text(reader, AT_FDCWD, "/proc/loadavg");
    system->has_load = bp_load_parse(reader->text, length, &system->load);
    int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (proc_fd >= 0) {
        bp_machine_read_pressure(proc_fd, system->pressure, &reader->summary);
    }
    bp_file_close(proc_fd);
}

/* The machine's own namespaces have these inodes (enum in include/linux/proc_ns.h). */
static bool has_own_namespace(const struct reader *reader) {
    static const struct {
        const char *path;
        uint64_t initial_inode;
    } known[] = {{"ns/ipc", 0xEFFFFFFF}, {"ns/uts", 0xEFFFFFFE},    {"ns/user", 0xEFFFFFFD},
                 {"ns/pid", 0xEFFFFFFC}, {"ns/cgroup", 0xEFFFFFFB}, {"ns/time", 0xEFFFFFFA}};
    bool has_one = false;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        struct stat info;
        has_one = has_one || (fstatat(reader->process_fd, known[i].path, &info, 0) == 0 &&
                              (uint64_t)info.st_ino != known[i].initial_inode);
    }
    return has_one;
}

/* By the files that these leave in a container, and in a virtual machine that was made of its
 * image: without a namespace of its own, a process is in no container. */
static void read_container(struct reader *reader) {
    static const struct {
        const char *path, *name;
    } marks[] = {{"run/.containerenv", "podman"},
                 {".dockerenv", "docker"},
                 {"var/run/secrets/kubernetes.io/serviceaccount/namespace", "kubernetes"}};
    bp_system *system = &reader->system;
    if (!reader->has_root || !has_own_namespace(reader)) {
        return;
    }
    for (size_t i = 0; system->container == NULL && i < sizeof marks / sizeof marks[0]; i++) {
        int fd = system_open(reader->root_fd, marks[i].path);
        system->container = fd >= 0 || errno == EACCES ? marks[i].name : NULL;
        bp_file_close(fd);
    }
}

/* False without memory. */
static bool read_executable(struct reader *reader) {
    char path[path_bytes_max];
    ssize_t length = readlinkat(reader->process_fd, "exe", path, sizeof path - 1);
    struct stat info;
    if (length <= 0) {
        return true; /* a kernel thread, or not ours to see */
    }
    size_t kept = bp_proc_deleted_path_length(path, (size_t)length);
    bool is_deleted =
        kept > 0 && fstatat(reader->process_fd, "exe", &info, 0) == 0 && info.st_nlink == 0;
    reader->system.is_executable_deleted = is_deleted;
    reader->system.executable = strndup(path, is_deleted ? kept : (size_t)length);
    return reader->system.executable != NULL;
}

/* False without memory. */
static bool read_groups(struct reader *reader) {
    size_t length = read_text(reader, reader->process_fd, "cgroup");
    return bp_machine_cgroups_of_process(reader->text, length, &reader->system, &reader->summary);
}

void bp_system_read_groups(pid_t pid, bp_system *ret_system) {
    char text[text_bytes_max];
    bp_machine_summary summary = {.error_count = 0};
    int process_fd = bp_proc_open_process(pid);
    ssize_t length = bp_proc_read_small(process_fd, "cgroup", text, sizeof text);
    *ret_system = (bp_system){.cgroup_count = 0};
    if (length > 0 && !bp_machine_cgroups_of_process(text, (size_t)length, ret_system, &summary)) {
        bp_system_release(ret_system);
    }
    bp_file_close(process_fd);
}

/* How often a group was throttled, or out of memory, since the session began. */
static void compare_group(const bp_machine_cgroup *before, bp_machine_cgroup *now) {
    static const struct {
        bp_cgroup_figure total, since;
    } pairs[] = {{BP_CGROUP_CPU_PERIODS, BP_CGROUP_CPU_SESSION_PERIODS},
                 {BP_CGROUP_CPU_THROTTLED_PERIODS, BP_CGROUP_CPU_SESSION_THROTTLED},
                 {BP_CGROUP_MEMORY_OOM_KILLS, BP_CGROUP_MEMORY_SESSION_OOM_KILLS}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        const bp_machine_figure *was = &before->figures[pairs[i].total];
        const bp_machine_figure *is = &now->figures[pairs[i].total];
        if (was->is_known && is->is_known && is->value >= was->value) {
            now->figures[pairs[i].since] =
                (bp_machine_figure){.is_known = true, .value = is->value - was->value};
        }
    }
}

static void compare_groups(const bp_system *before, bp_system *now) {
    for (size_t i = 0; before != NULL && i < before->cgroup_count; i++) {
        for (size_t k = 0; k < now->cgroup_count; k++) {
            if (strcmp(before->cgroups[i].path, now->cgroups[k].path) == 0) {
                compare_group(&before->cgroups[i], &now->cgroups[k]);
            }
        }
    }
}

bool bp_system_read_groups_again(const bp_system *before, bp_system *system) {
    bp_machine_summary summary = {.error_count = 0};
    bool has_memory = bp_machine_cgroups_again(before, system, &summary);
    compare_groups(before, system);
    return has_memory;
}

static bool read_process(struct reader *reader) {
    const bp_system *before = reader->plan->groups_before;
    bp_proc_stat stat;
    read_usable_cpus(reader);
    read_container(reader);
    /* In version 1 a process that has ended is in "/" until somebody waits for it. */
    bool has_ended = bp_proc_read_stat(reader->process_fd, &stat, "stat") == 0 && stat.state == 'Z';
    bool has_memory = has_ended && before != NULL && before->cgroup_count > 0
                          ? bp_machine_cgroups_again(before, &reader->system, &reader->summary)
                          : read_groups(reader);
    has_memory = has_memory && read_executable(reader);
    compare_groups(before, &reader->system);
    int root_fd = reader->has_root ? reader->root_fd : -1;
    /* Last: one of a network may take long to answer. */
    bp_filesystems_read(reader->process_fd, root_fd, &reader->system);
    return has_memory;
}

/* True if the process has our mounts. Its mountinfo asks for no right, and each number in it is one
 * of the machine (mnt_alloc_id, fs/namespace.c). */
static bool has_our_mounts(int process_fd) {
    bp_buffer own, other;
    bp_buffer_init(&own, mounts_bytes_max);
    bp_buffer_init(&other, mounts_bytes_max);
    bool is_read = bp_file_read_at(AT_FDCWD, "/proc/self/mountinfo", &own, NULL) == BUGPACK_OK &&
                   bp_file_read_at(process_fd, "mountinfo", &other, NULL) == BUGPACK_OK;
    bool is_same = is_read && own.size > 0 && own.size == other.size &&
                   memcmp(own.data, other.data, own.size) == 0;
    bp_buffer_release(&own);
    bp_buffer_release(&other);
    return is_same;
}

static void open_places(struct reader *reader) {
    reader->root_fd = -1;
    reader->process_fd = reader->plan->with_process ? bp_proc_open_process(reader->plan->pid) : -1;
    if (reader->process_fd >= 0) {
        reader->root_fd = openat(reader->process_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
    reader->has_root = reader->root_fd >= 0;
    int system_errno = errno;
    if (reader->process_fd >= 0 && !reader->has_root && !is_absence(system_errno) &&
        !has_our_mounts(reader->process_fd)) {
        note_unread(reader, system_errno); /* it may be in a container, and we in another */
    } else if (!reader->has_root) {
        reader->root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    }
}

bugpack_status bp_system_read(const bp_system_plan *plan, bp_system *ret_system,
                              bugpack_error *error) {
    struct reader *reader = calloc(1, sizeof *reader);
    if (reader == NULL) {
        return bp_fail_memory(error, "describe the system");
    }
    reader->plan = plan;
    open_places(reader);
    bp_system *system = &reader->system;
    size_t length = read_in_root(reader, "etc/os-release");
    length = length > 0 ? length : read_in_root(reader, "usr/lib/os-release");
    (void)bp_os_release_find(reader->text, length, "ID", system->distribution_id,
                             sizeof system->distribution_id);
    (void)bp_os_release_find(reader->text, length, "VERSION_ID", system->distribution_version,
                             sizeof system->distribution_version);
    (void)bp_os_release_find(reader->text, length, "PRETTY_NAME", system->distribution_name,
                             sizeof system->distribution_name);
    read_kernel(reader);
    read_cpus(reader);
    read_memory(reader);
    reader->system.has_process = reader->process_fd >= 0;
    bool has_memory = !reader->system.has_process || read_process(reader);
    for (size_t i = 0; i < reader->summary.error_count; i++) {
        reader->system.unread_count += (size_t)reader->summary.errors[i].file_count;
        reader->system.unread_errno = reader->summary.errors[i].system_errno;
    }
    if (has_memory) {
        *ret_system = reader->system;
        reader->system = (bp_system){.cgroup_count = 0};
    }
    bp_system_release(&reader->system);
    bp_file_close(reader->root_fd);
    bp_file_close(reader->process_fd);
    free(reader);
    return has_memory ? BUGPACK_OK : bp_fail_memory(error, "describe the system");
}
