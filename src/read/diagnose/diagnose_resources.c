/* Diagnoses of what runs out: descriptors, memory, space on disks, limits of control groups. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/utf8.h"
#include "diagnose/evidence.h"

/* --- the process -------------------------------------------------------------------------- */

void bp_diagnose_fd_limit(bp_evidence *evidence) {
    uint64_t open_count, limit_count = bp_limit(evidence->process, "Max open files", "soft");
    if (bp_json_tree_uint(evidence->process, "open_files", &open_count) && limit_count > 0 &&
        open_count >= limit_count - limit_count / 10) {
        char kinds[BP_OPEN_FILES_BYTES];
        bp_open_files_describe(evidence, kinds);
        bp_find(evidence, "{} of at most {} file descriptors are open{}", BP_COUNT(open_count),
                BP_COUNT(limit_count), BP_TEXT(kinds));
    }
}

/* The kernel counts all threads of the user; root's are not limited (copy_process, kernel/fork.c).
 */
void bp_diagnose_thread_limit(bp_evidence *evidence) {
    uint64_t uid, count = 0, limit_count = bp_limit(evidence->process, "Max processes", "soft");
    uint64_t own_count = bp_json_tree_uint_or(evidence->process, "threads", 0);
    bool has_all = bp_json_tree_uint(evidence->process, "user_threads", &count);
    count = has_all && count > own_count ? count : own_count;
    if (bp_json_tree_uint(evidence->process, "uid", &uid) && uid != 0 && limit_count > 0 &&
        count >= limit_count - limit_count / 10) {
        bp_find(evidence,
                "its user has {} processes and threads, of at most {} (RLIMIT_NPROC); {} {is|are} "
                "its own",
                BP_COUNT(count), BP_COUNT(limit_count), BP_COUNT(own_count));
    }
}

void bp_diagnose_map_limit(bp_evidence *evidence) {
    uint64_t count, max;
    if (bp_json_tree_uint(evidence->process, "mappings", &count) &&
        bp_json_tree_uint(evidence->process, "mappings_max", &max) && count >= max - max / 10) {
        bp_find(evidence, "{} of at most {} mappings of memory are in use (vm.max_map_count)",
                BP_COUNT(count), BP_COUNT(max));
    }
}

/* The limits are of all processes of a user; those of others are not counted. */
void bp_diagnose_inotify_limit(bp_evidence *evidence) {
    static const char *const limits[][2] = {{"instances", "instances_max"},
                                            {"watches", "watches_max"}};
    const bp_json_tree *inotify = bp_json_tree_object(evidence->files_rest, "inotify");
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        uint64_t used, max;
        if (bp_json_tree_uint(inotify, limits[i][0], &used) &&
            bp_json_tree_uint(inotify, limits[i][1], &max) && used >= max - max / 10) {
            bp_find(evidence,
                    "it has {} inotify {} alone; all processes of its user may have {} "
                    "(fs.inotify.max_user_{})",
                    BP_COUNT(used), BP_TEXT(limits[i][0]), BP_COUNT(max), BP_TEXT(limits[i][0]));
        }
    }
}

void bp_diagnose_memory_limit(bp_evidence *evidence) {
    static const struct {
        const char *limit, *key, *what, *name;
    } rows[] = {{"Max address space", "vm_size_kb", "address space", "RLIMIT_AS"},
                {"Max data size", "data_kb", "data", "RLIMIT_DATA"}};
    const bp_json_tree *memory = bp_json_tree_object(evidence->process, "memory");
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        uint64_t used_kb, limit_kb = bp_limit(evidence->process, rows[i].limit, "soft") >> 10;
        if (bp_json_tree_uint(memory, rows[i].key, &used_kb) && limit_kb > 0 &&
            used_kb >= limit_kb - limit_kb / 10) {
            bp_find(evidence, "{} of at most {} MiB of {} are in use ({})", BP_COUNT(used_kb >> 10),
                    BP_COUNT(limit_kb >> 10), BP_TEXT(rows[i].what), BP_TEXT(rows[i].name));
        }
    }
}

/* A healthy machine, too, swaps out memory that was not used for days; of a process that works it
 * is little. */
void bp_diagnose_swapped(bp_evidence *evidence) {
    static const uint64_t least_kb = 64 << 10;
    const bp_json_tree *memory = bp_json_tree_object(evidence->process, "memory");
    uint64_t swap_kb, rss_kb;
    if (bp_json_tree_uint(memory, "swap_kb", &swap_kb) &&
        bp_json_tree_uint(memory, "rss_kb", &rss_kb) && swap_kb >= least_kb &&
        swap_kb >= rss_kb / 3) {
        bp_find(evidence, "{} MiB of its memory are swapped out, {} resident",
                BP_COUNT(swap_kb >> 10), BP_COUNT(rss_kb >> 10));
    }
}

/* A shell or a server that works has a few for a moment; one that waits only once a second, as some
 * do, has at most what it starts in that time. */
void bp_diagnose_many_zombies(bp_evidence *evidence) {
    enum { zombies_min = 20 };
    uint64_t count = bp_json_tree_uint_or(evidence->process, "zombie_children", 0);
    if (count >= zombies_min) {
        const char *name = bp_json_tree_text_or(evidence->process, "zombie_name", "?");
        bp_find(evidence,
                "{} of its children have ended and were not waited for, most of them \"{}\"",
                BP_COUNT(count), BP_CUT_TEXT(name, 63));
    }
}

/* Libraries alone are replaced by every update of a machine, and nothing is wrong. */
void bp_diagnose_deleted_code(bp_evidence *evidence) {
    const char *executable = bp_json_tree_text_or(evidence->process, "executable", "");
    const char *deleted = NULL;
    uint64_t count = 0;
    BP_JSON_EACH (object, bp_json_tree_rows(evidence->process, "loaded_objects")) {
        const char *path = bp_json_tree_text_or(object, "path", "?");
        size_t length = strlen(path);
        if (!bp_json_tree_is_true(object, "deleted")) {
            continue;
        }
        count++;
        if (strncmp(executable, path, length) == 0 &&
            (executable[length] == '\0' || executable[length] == ' ')) {
            deleted = path;
        }
    }
    if (deleted != NULL) {
        bp_find(evidence,
                "the executable {}{[, and {} of its libraries]}: deleted or replaced since it was "
                "started",
                BP_CUT_TEXT(deleted, 127), BP_COUNT(count - 1));
    }
}

/* --- open files --------------------------------------------------------------------------- */

/* "at least ", where a list was too long to be kept whole. */
static const char *at_least(const bp_rows *rows) {
    return rows->count < rows->total_count ? "at least " : "";
}

/* A healthy server has tens of connections in CLOSE_WAIT for a moment. */
void bp_diagnose_close_wait(bp_evidence *evidence) {
    enum { close_wait_min = 50 };
    const bp_rows *files = &evidence->files;
    size_t count = 0;
    for (size_t i = 0; i < files->count; i++) {
        const bp_json_tree *socket = bp_json_tree_object(files->rows[i], "socket");
        count += strcmp(bp_json_tree_text_or(socket, "state", ""), "close_wait") == 0;
    }
    if (count >= close_wait_min) {
        bp_find(evidence,
                "{}{} of its sockets are in CLOSE_WAIT: the other side has closed them, the "
                "program has not",
                BP_TEXT(at_least(files)), BP_COUNT(count));
    }
}

void bp_diagnose_accept_queue(bp_evidence *evidence) {
    for (size_t i = 0; i < evidence->files.count; i++) {
        const bp_json_tree *socket = bp_json_tree_object(evidence->files.rows[i], "socket");
        uint64_t waiting, backlog;
        if (bp_json_tree_uint(socket, "waiting_connections", &waiting) &&
            bp_json_tree_uint(socket, "backlog", &backlog) && backlog > 0 && waiting >= backlog) {
            const char *listener = bp_json_tree_text_or(socket, "local", "?");
            bp_find(evidence, "{} connection{|s} wait{s|} to be accepted on {}: the queue is full",
                    BP_COUNT(waiting), BP_CUT_TEXT(listener, 63));
            return;
        }
    }
}

/* True if it never was to be found by its name: O_TMPFILE (open(2)), or a file that SQLite deletes
 * as soon as it is open. */
static bool is_temporary(const char *path) {
    static const char *const names[] = {"#", "etilqs_", NULL};
    const char *slash = strrchr(path, '/');
    return slash != NULL && bp_array_has_start(names, slash + 1);
}

void bp_diagnose_deleted_file(bp_evidence *evidence) {
    static const uint64_t least_bytes = (uint64_t)64 << 20;
    const bp_rows *files = &evidence->files;
    uint64_t count = 0, all_bytes = 0, largest_bytes = 0, bytes;
    const char *largest = "";
    for (size_t i = 0; i < files->count; i++) {
        const bp_json_tree *file = files->rows[i];
        const char *target = bp_json_tree_text_or(file, "target", "");
        bool is_on_disk = strncmp(target, "/memfd:", 7) != 0 && strncmp(target, "/dev/", 5) != 0;
        if (bp_json_tree_is_true(file, "deleted") && is_on_disk && !is_temporary(target) &&
            strcmp(bp_json_tree_text_or(file, "access", "read"), "read") != 0 &&
            bp_json_tree_uint(file, "size_bytes", &bytes) && bytes >= least_bytes) {
            count++;
            all_bytes += bytes;
            largest = bytes > largest_bytes ? target : largest;
            largest_bytes = bytes > largest_bytes ? bytes : largest_bytes;
        }
    }
    if (count > 0) {
        bp_find(evidence, "{}{} MiB are in {} deleted file{|s} that it holds open, the largest {}",
                BP_TEXT(at_least(files)), BP_COUNT(all_bytes >> 20), BP_COUNT(count),
                BP_CUT_TEXT(largest, 127));
    }
}

/* --- the machine -------------------------------------------------------------------------- */

void bp_diagnose_memory_low(bp_evidence *evidence) {
    const bp_json_tree *memory = bp_json_tree_object(evidence->system, "memory");
    uint64_t total_kb, available_kb;
    if (bp_json_tree_uint(memory, "total_kb", &total_kb) &&
        bp_json_tree_uint(memory, "available_kb", &available_kb) && available_kb < total_kb / 20) {
        bp_find(evidence, "the machine has {} MiB of memory left, of {} MiB",
                BP_COUNT(available_kb >> 10), BP_COUNT(total_kb >> 10));
    }
}

static const bp_json_tree *first_cgroup(const bp_evidence *evidence) {
    return bp_json_tree_rows(evidence->system, "cgroups");
}

static bp_argument cgroup_path(const bp_json_tree *cgroup) {
    return BP_CUT_TEXT(bp_json_tree_text_or(cgroup, "path", "?"), 120);
}

/* The memory that the kernel cannot take from a group by dropping pages of files; and its limit:
 * above the lower one, memory.high, it lets the group hardly run. */
static bool group_memory(const bp_json_tree *cgroup, uint64_t *ret_used, uint64_t *ret_max) {
    const bp_json_tree *memory = bp_json_tree_object(cgroup, "memory");
    uint64_t max = bp_json_tree_uint_or(memory, "max_bytes", UINT64_MAX);
    uint64_t high = bp_json_tree_uint_or(memory, "high_bytes", UINT64_MAX);
    uint64_t file = bp_json_tree_uint_or(memory, "file_bytes", 0);
    uint64_t shared = bp_json_tree_uint_or(memory, "shmem_bytes", 0); /* a part of the former */
    uint64_t droppable = file > shared ? file - shared : 0;
    bool is_known = bp_json_tree_uint(memory, "current_bytes", ret_used);
    *ret_used -= is_known && droppable < *ret_used ? droppable : *ret_used;
    *ret_max = max < high ? max : high;
    return is_known && *ret_max < UINT64_MAX;
}

static bool group_tasks(const bp_json_tree *cgroup, uint64_t *ret_used, uint64_t *ret_max) {
    const bp_json_tree *pids = bp_json_tree_object(cgroup, "pids");
    return bp_json_tree_uint(pids, "current", ret_used) && bp_json_tree_uint(pids, "max", ret_max);
}

/* The control group with the least left, of that of the process and those above it, if it is near
 * its limit; or NULL. */
static const bp_json_tree *find_tightest(const bp_evidence *evidence,
                                         bool (*read)(const bp_json_tree *, uint64_t *, uint64_t *),
                                         uint64_t *ret_used, uint64_t *ret_max) {
    const bp_json_tree *tightest = NULL;
    uint64_t used, max, least = UINT64_MAX;
    BP_JSON_EACH (cgroup, first_cgroup(evidence)) {
        if (read(cgroup, &used, &max) && used >= max - max / 10 &&
            (tightest == NULL || max - used < least)) {
            tightest = cgroup;
            least = used < max ? max - used : 0;
            *ret_used = used;
            *ret_max = max;
        }
    }
    return tightest;
}

void bp_diagnose_cgroup_limit(bp_evidence *evidence) {
    uint64_t used = 0, max = 0, swap_max;
    const bp_json_tree *cgroup = find_tightest(evidence, group_memory, &used, &max);
    if (cgroup != NULL) {
        const bp_json_tree *memory = bp_json_tree_object(cgroup, "memory");
        uint64_t swap = bp_json_tree_uint_or(memory, "swap_bytes", 0);
        bool is_swap_limited = bp_json_tree_uint(memory, "swap_max_bytes", &swap_max);
        bool is_without_swap = is_swap_limited && swap_max == 0;
        bp_find(evidence,
                "the control group \"{}\" uses {} of at most {} MiB of memory{}{[, and {} MiB of "
                "swap]}{[, of which it may use {}]}",
                cgroup_path(cgroup), BP_COUNT(used >> 20), BP_COUNT(max >> 20),
                BP_TEXT(is_without_swap ? ", and may not swap" : ""), BP_COUNT(swap >> 20),
                BP_COUNT(is_swap_limited ? swap_max >> 20 : 0));
    }
    cgroup = find_tightest(evidence, group_tasks, &used, &max);
    if (cgroup != NULL) {
        bp_find(evidence, "the control group \"{}\" has {} of at most {} processes and threads",
                cgroup_path(cgroup), BP_COUNT(used), BP_COUNT(max));
    }
}

/* While the session was open, as of a watch, a command or a capture's window: a healthy group may
 * have been throttled long ago. */
void bp_diagnose_throttled(bp_evidence *evidence) {
    enum { periods_min = 5 };
    BP_JSON_EACH (cgroup, first_cgroup(evidence)) {
        const bp_json_tree *cpu = bp_json_tree_object(cgroup, "cpu");
        uint64_t periods, throttled, quota_ns, period_ns;
        double cpus = 0;
        if (!bp_json_tree_uint(cpu, "session_periods", &periods) ||
            !bp_json_tree_uint(cpu, "session_throttled_periods", &throttled) ||
            periods < periods_min || throttled * 4 < periods) {
            continue;
        }
        if (bp_json_tree_uint(cpu, "quota_ns", &quota_ns) &&
            bp_json_tree_uint(cpu, "period_ns", &period_ns) && period_ns > 0) {
            cpus = (double)quota_ns / (double)period_ns;
        }
        bp_find(evidence,
                "the control group \"{}\" was throttled in {} of {} periods while it was "
                "observed{[; it may use {}]}",
                cgroup_path(cgroup), BP_COUNT(throttled), BP_COUNT(periods),
                BP_NUMBER(cpus, 2, " CPUs"));
    }
}

/* "/ and /tmp and the working directory", or a file; "?" where the document does not say. */
static void name_places(const bp_json_tree *filesystem, char *out, size_t out_bytes) {
    static const struct {
        const char *key, *name;
    } places[] = {{"root", "/"}, {"tmp", "/tmp"}, {"working_directory", "the working directory"}};
    size_t used = 0;
    const char *file = bp_json_tree_text_or(filesystem, "file", "?");
    bp_utf8_copy_ends(out, out_bytes, file, strlen(file));
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const bp_json_tree *of = bp_json_tree_rows(filesystem, "of");
        while (of != NULL && strcmp(bp_json_tree_value(of), places[i].key) != 0) {
            of = bp_json_tree_next(of);
        }
        used += of == NULL ? 0
                           : (size_t)snprintf(out + used, out_bytes - used, "%s%s",
                                              used > 0 ? " and " : "", places[i].name);
    }
}

static const double low_percent = 90;

static bool is_full(double used_percent, uint64_t left) {
    return used_percent >= 98 || left == 0;
}

/* Both diagnoses of space. A file system that is read-only always is full. */
void bp_diagnose_disks(bp_evidence *evidence) {
    bool is_wanted_full = evidence->running == BP_DIAGNOSIS_DISK_FULL;
    BP_JSON_EACH (row, bp_json_tree_rows(evidence->system, "filesystems")) {
        char places[160];
        double percent;
        uint64_t left;
        if (!bp_json_tree_is_true(row, "read_only") &&
            bp_json_tree_uint(row, "available_bytes", &left) &&
            bp_json_tree_number(row, "used_percent", &percent) && percent >= 0 && percent <= 100 &&
            (percent >= low_percent || left == 0) && is_full(percent, left) == is_wanted_full) {
            static const char *const units[] = {" KiB", " MiB", " GiB"};
            int unit = 0;
            while (unit < 2 && left >= UINT64_C(1) << 10 * (unit + 2)) {
                unit++;
            }
            name_places(row, places, sizeof places);
            bp_find(evidence, "the file system of {} is {} % full: {} are left", BP_TEXT(places),
                    BP_COUNT((uint64_t)percent),
                    BP_NUMBER((double)left / (double)(1 << 10 * (unit + 1)), 1, units[unit]));
        }
    }
}

/* A log that was read of a full file system, which the process itself need not have open. */
void bp_diagnose_full_log(bp_evidence *evidence) {
    const bp_findings *findings = evidence->findings;
    const char *first = "";
    uint64_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        if (findings->rows[i].diagnosis == BP_DIAGNOSIS_DISK_FULL) {
            return; /* probably the same */
        }
    }
    BP_JSON_EACH (line, bp_json_tree_rows(evidence->manifest, "artefacts")) {
        if (bp_json_tree_is_true(line, "disk_full")) {
            first = count++ == 0 ? bp_json_tree_text_or(line, "name", "?") : first;
        }
    }
    if (count > 0) {
        bp_find(evidence,
                "the file system of the log {} is full{[, and so is that of {} more log{|s}]}",
                BP_CUT_TEXT(first, 120), BP_COUNT(count - 1));
    }
}

void bp_diagnose_inodes(bp_evidence *evidence) {
    bool is_wanted_full = evidence->running == BP_DIAGNOSIS_INODES_FULL;
    BP_JSON_EACH (row, bp_json_tree_rows(evidence->system, "filesystems")) {
        char places[160];
        uint64_t left, total;
        if (bp_json_tree_is_true(row, "read_only") ||
            !bp_json_tree_uint(row, "total_inodes", &total) ||
            !bp_json_tree_uint(row, "free_inodes", &left) || left > total || total == 0) {
            continue;
        }
        double percent = 100.0 * (double)(total - left) / (double)total;
        if (percent >= low_percent && is_full(percent, left) == is_wanted_full) {
            name_places(row, places, sizeof places);
            bp_find(evidence, "the file system of {} has {} of {} inodes left", BP_TEXT(places),
                    BP_COUNT(left), BP_COUNT(total));
        }
    }
}

/* A file that is open for writing was opened before the file system became so, as after an error of
 * the disk (ext4(5), errors=remount-ro). */
void bp_diagnose_disk_read_only(bp_evidence *evidence) {
    BP_JSON_EACH (row, bp_json_tree_rows(evidence->system, "filesystems")) {
        const char *file = bp_json_tree_text(row, "file");
        if (file != NULL && bp_json_tree_is_true(row, "read_only")) {
            bp_find(evidence, "the file system of {} is read-only, and the file open for writing",
                    BP_CUT_TEXT(file, 159));
        }
    }
}
