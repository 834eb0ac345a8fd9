/* Findings, and those of system.json: limits that are near. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "inspect/summary.h"

const char *bp_severity_name(bp_severity severity) {
    static const char *const names[] = {"critical", "warning", "info"};
    return names[severity];
}

/* Beyond the maximum, the newest of the least severe ones is only counted. */
static void add(bp_summary *summary, const bp_finding *finding) {
    bp_finding *findings = summary->findings;
    if (summary->finding_count == BP_SUMMARY_FINDING_MAX) {
        size_t least = 0;
        for (size_t i = 1; i < BP_SUMMARY_FINDING_MAX; i++) {
            least = findings[i].severity >= findings[least].severity ? i : least;
        }
        bool makes_room = findings[least].severity > finding->severity;
        summary->other_finding_counts[makes_room ? findings[least].severity : finding->severity]++;
        if (!makes_room) {
            return;
        }
        summary->finding_count--;
        memmove(&findings[least], &findings[least + 1],
                (summary->finding_count - least) * sizeof findings[0]);
    }
    findings[summary->finding_count++] = *finding;
}

void bp_summary_find(bp_summary *summary, bp_severity severity, const char *entry,
                     const char *format, ...) {
    bp_finding finding = {.severity = severity};
    char name[2 * sizeof finding.entry], text[2 * sizeof finding.text];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)snprintf(name, sizeof name, "%s%s", summary->folder, entry);
    bp_utf8_copy(finding.entry, sizeof finding.entry, name);
    bp_utf8_copy(finding.text, sizeof finding.text, text);
    add(summary, &finding);
}

void bp_summary_take_findings(bp_summary *summary, const bp_summary *of_process) {
    for (size_t i = 0; i < of_process->finding_count; i++) {
        add(summary, &of_process->findings[i]);
    }
    for (size_t i = 0; i < BP_SEVERITY_COUNT; i++) {
        summary->other_finding_counts[i] += of_process->other_finding_counts[i];
    }
}

uint64_t bp_summary_other_findings(const bp_summary *summary) {
    uint64_t count = 0;
    for (size_t i = 0; i < BP_SEVERITY_COUNT; i++) {
        count += summary->other_finding_counts[i];
    }
    return count;
}

/* A control group that is near one of its limits, or had to kill. */
static void read_cgroup(bp_summary *summary, const bp_json_tree *cgroup) {
    static const struct {
        const char *group, *used, *max, *what;
    } limits[] = {{"memory", "current_bytes", "max_bytes", "bytes of memory"},
                  {"pids", "current", "max", "tasks"}};
    char path[121];
    uint64_t used, max, kills;
    bp_utf8_copy(path, sizeof path, bp_json_tree_text_or(cgroup, "path", "?"));
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const bp_json_tree *group = bp_json_tree_object(cgroup, limits[i].group);
        if (bp_json_tree_uint(group, limits[i].used, &used) &&
            bp_json_tree_uint(group, limits[i].max, &max) && used >= max - max / 10) {
            bp_summary_find(summary, BP_SEVERITY_CRITICAL, "system.json",
                            "the control group \"%s\" uses %" PRIu64 " of at most %" PRIu64 " %s",
                            path, used, max, limits[i].what);
        }
    }
    if (bp_json_tree_uint(bp_json_tree_object(cgroup, "memory"), "oom_kills", &kills) &&
        kills > 0) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, "system.json",
                        "the control group \"%s\" ran out of memory: %" PRIu64
                        " processes were killed",
                        path, kills);
    }
}

/* "/, /tmp and the working directory"; "?" where the document does not say. */
static void name_places(const bp_json_tree *filesystem, char *out, size_t out_bytes) {
    static const struct {
        const char *key, *name;
    } places[] = {{"root", "/"}, {"tmp", "/tmp"}, {"working_directory", "the working directory"}};
    size_t used = 0;
    (void)snprintf(out, out_bytes, "?");
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        const bp_json_tree *of = bp_json_tree_first(bp_json_tree_array(filesystem, "of"));
        while (of != NULL && strcmp(bp_json_tree_value(of), places[i].key) != 0) {
            of = bp_json_tree_next(of);
        }
        used += of == NULL ? 0
                           : (size_t)snprintf(out + used, out_bytes - used, "%s%s",
                                              used > 0 ? " and " : "", places[i].name);
    }
}

static bp_severity judge_use(double used_percent, uint64_t left) {
    return used_percent >= 98 || left == 0 ? BP_SEVERITY_CRITICAL
           : used_percent >= 90            ? BP_SEVERITY_WARNING
                                           : BP_SEVERITY_INFO;
}

/* A file system that is nearly full. One that is read-only always is. */
static void read_filesystem(bp_summary *summary, const bp_json_tree *filesystem) {
    char places[64];
    double percent;
    uint64_t left, total;
    if (bp_json_tree_is_true(filesystem, "read_only")) {
        return;
    }
    name_places(filesystem, places, sizeof places);
    if (bp_json_tree_uint(filesystem, "available_bytes", &left) &&
        bp_json_tree_number(filesystem, "used_percent", &percent) && percent >= 0 &&
        percent <= 100 && judge_use(percent, left) != BP_SEVERITY_INFO) {
        int unit = left >= UINT64_C(1) << 30 ? 2 : left >= UINT64_C(1) << 20 ? 1 : 0;
        bp_summary_find(summary, judge_use(percent, left), "system.json",
                        "the file system of %s is %d %% full: %.1f %ciB are left", places,
                        (int)percent, (double)left / (double)(1 << 10 * (unit + 1)), "KMG"[unit]);
    }
    if (bp_json_tree_uint(filesystem, "total_inodes", &total) &&
        bp_json_tree_uint(filesystem, "free_inodes", &left) && left <= total && total > 0) {
        percent = 100.0 * (double)(total - left) / (double)total;
        if (judge_use(percent, left) != BP_SEVERITY_INFO) {
            bp_summary_find(summary, judge_use(percent, left), "system.json",
                            "the file system of %s has %" PRIu64 " of %" PRIu64 " inodes left",
                            places, left, total);
        }
    }
}

void bp_summary_read_system(bp_summary *summary, const bp_json_tree *system) {
    const bp_json_tree *memory = bp_json_tree_object(system, "memory");
    uint64_t total_kb, available_kb;
    bp_machine_read_system(&summary->machine, system);
    if (bp_json_tree_uint(memory, "total_kb", &total_kb) &&
        bp_json_tree_uint(memory, "available_kb", &available_kb) && available_kb < total_kb / 20) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, "system.json",
                        "the machine has %" PRIu64 " MiB of memory left, of %" PRIu64 " MiB",
                        available_kb >> 10, total_kb >> 10);
    }
    for (const bp_json_tree *cgroup = bp_json_tree_first(bp_json_tree_array(system, "cgroups"));
         cgroup != NULL; cgroup = bp_json_tree_next(cgroup)) {
        read_cgroup(summary, cgroup);
    }
    for (const bp_json_tree *row = bp_json_tree_first(bp_json_tree_array(system, "filesystems"));
         row != NULL; row = bp_json_tree_next(row)) {
        read_filesystem(summary, row);
    }
}
