/* What the numbers of a report say together: the findings; and a summary that has them. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
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

/* A name or an address takes so many bytes at most. */
enum { name_bytes_max = 47 };

static int cut_length(const char *text) {
    size_t length = strlen(text);
    return (int)(length <= name_bytes_max ? length : bp_utf8_cut(text, length, name_bytes_max));
}

/* "pipe 3 of cat (4711) and 2 more", "socket 4 of 10.0.0.9:5900", "socket 5": who is at the other
 * end, as far as it is known. */
static void print_file(const bp_json_tree *wait, const char *kind, char *out, size_t out_bytes) {
    const bp_json_tree *holder = bp_json_tree_first(bp_json_tree_array(wait, "other_end"));
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const char *address =
        bp_json_tree_text_or(socket, "remote", bp_json_tree_text_or(socket, "local", ""));
    const char *name = bp_json_tree_text_or(holder, "name", "?");
    uint64_t fd = 0, pid = 0;
    size_t more = 0;
    char end[96] = "", others[32] = "";
    (void)bp_json_tree_uint(wait, "fd", &fd);
    for (const bp_json_tree *next = holder; next != NULL; next = bp_json_tree_next(next)) {
        more += next != holder ? 1 : 0;
    }
    if (more > 0) {
        (void)snprintf(others, sizeof others, " and %zu more", more);
    }
    if (bp_json_tree_uint(holder, "pid", &pid)) {
        (void)snprintf(end, sizeof end, " of %.*s (%" PRIu64 ")", cut_length(name), name, pid);
    } else if (address[0] != '\0') {
        (void)snprintf(end, sizeof end, " of %.*s", cut_length(address), address);
    }
    (void)snprintf(out, out_bytes, "%.16s %" PRIu64 "%s%s", kind, fd, end, others);
}

void bp_summary_read_wait(bp_summary_thread *thread, const bp_json_tree *wait) {
    const char *kind = bp_json_tree_text(wait, "kind");
    uint64_t tid;
    if (bp_json_tree_uint(wait, "tid", &tid)) {
        (void)snprintf(thread->waits_for, sizeof thread->waits_for, "%" PRIu64 " (%.32s)", tid,
                       kind != NULL ? kind : "?");
        thread->waits_for_thread = true;
    } else if (kind != NULL) {
        print_file(wait, kind, thread->waits_for, sizeof thread->waits_for);
    }
}

const char *bp_summary_born_words(const bp_summary_thread *thread) {
    const char *words = thread->state[0] != '\0' ? "born in the window, " : "born in the window";
    return thread->is_born ? words : "";
}

const char *bp_summary_wait_words(const bp_summary_thread *thread) {
    return thread->waits_for[0] == '\0' ? ""
           : thread->waits_for_thread   ? ", waits for thread "
                                        : ", waits on ";
}

bool bp_summary_signal(const bp_summary *summary, char out[BP_SUMMARY_SIGNAL_BYTES]) {
    const bp_json_tree *end = bp_json_tree_object(summary->metadata, "exit");
    const char *name = bp_json_tree_text(end, "name");
    uint64_t number;
    bp_utf8_copy(out, BP_SUMMARY_SIGNAL_BYTES, name);
    if (name == NULL && bp_json_tree_uint(end, "signal", &number)) {
        (void)snprintf(out, BP_SUMMARY_SIGNAL_BYTES, "signal %" PRIu64, number);
    }
    return out[0] != '\0';
}

bool bp_summary_has_died_unseen(const bp_summary *summary) {
    const char *end = bp_json_tree_text_or(summary->metadata, "session_end", "");
    return strcmp(end, "died") == 0 && bp_json_tree_object(summary->metadata, "exit") == NULL &&
           !bp_report_file_has(summary->report, "crash.json", NULL);
}

void bp_summary_kind(const bp_summary *summary, char out[BP_SUMMARY_KIND_BYTES]) {
    const bp_json_tree *end = bp_json_tree_object(summary->metadata, "exit");
    uint64_t status;
    bp_utf8_copy(out, BP_SUMMARY_KIND_BYTES,
                 bp_json_tree_text_or(summary->metadata, "report_type", "report"));
    if (bp_json_tree_uint(end, "status", &status)) {
        (void)snprintf(out, BP_SUMMARY_KIND_BYTES, "exited with status %" PRIu64, status);
    }
}

static void find_end(bp_summary *summary) {
    const bp_json_tree *end = bp_json_tree_object(summary->metadata, "exit");
    char signal[BP_SUMMARY_SIGNAL_BYTES];
    uint64_t status;
    if (bp_summary_signal(summary, signal)) {
        bp_summary_find(summary, BP_SEVERITY_CRITICAL, "metadata.json", "it died of %s%s", signal,
                        bp_json_tree_is_true(end, "core_dumped") ? " (core dumped)" : "");
    } else if (bp_json_tree_uint(end, "status", &status) && status != 0) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, "metadata.json",
                        "it ended with exit status %" PRIu64, status);
    } else if (strcmp(bp_json_tree_text_or(summary->metadata, "session_end", ""), "died") == 0) {
        bp_summary_find(summary, BP_SEVERITY_CRITICAL, "metadata.json",
                        "the process died; its rings were recovered");
    }
}

static void find_gap(bp_summary *summary) {
    const char *key = bp_json_tree_text(summary->metadata, "gap_key");
    if (key != NULL) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, "metadata.json",
                        "the first occurrence of the gap \"%s\"", key);
    }
}

/* Automatic triggers shortly before the one of this report: the first are named. */
static void find_triggers(bp_summary *summary) {
    enum { named_max = 8 };
    size_t near_count = 0;
    const char *own_key = bp_json_tree_text_or(
        summary->metadata, "gap_key", bp_json_tree_text_or(summary->metadata, "channel", ""));
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(summary->manifest, "triggers"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *type = bp_json_tree_text_or(row, "report_type", ""),
                   *key = bp_json_tree_text_or(row, "key", "");
        const char *last = bp_json_tree_text(row, "last");
        uint64_t last_ns = 0, count = 0, now_ns = summary->triggered_wall_ns;
        (void)bp_json_tree_uint(row, "count", &count);
        bool is_near = last != NULL && now_ns != 0 && bp_clock_parse(last, &last_ns) &&
                       last_ns <= now_ns && now_ns - last_ns <= BP_SUMMARY_RECENT_NS;
        is_near = is_near && strcmp(type, "auto-snapshot") != 0 && strcmp(key, own_key) != 0;
        near_count += is_near;
        if (is_near && near_count <= named_max) {
            char kind[21], cut_key[121];
            bp_utf8_copy(kind, sizeof kind, strcmp(type, "pedantic") == 0 ? "gap" : type);
            bp_utf8_copy(cut_key, sizeof cut_key, key);
            bp_summary_find(summary, BP_SEVERITY_WARNING, "manifest.json",
                            "%s \"%s\" %.1f s before the trigger (%" PRIu64 " in the session)",
                            kind, cut_key, (double)(now_ns - last_ns) / 1e9, count);
        }
    }
    if (near_count > named_max) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, "manifest.json",
                        "%zu more gaps and disconnects in the %d s before the trigger",
                        near_count - named_max, (int)(BP_SUMMARY_RECENT_NS / BP_NS_PER_SEC));
    }
}

/* A thread that was born in the window is busy by what it used of its own time, where that is long
 * enough to say something. */
static void find_busy_threads(bp_summary *summary) {
    static const double busy_percent = 90, least_age_ms = 250;
    for (size_t i = 0; i < summary->listed_count; i++) {
        const bp_summary_thread *thread = &summary->threads[i];
        bool has_rate = thread->is_born && thread->age_ms >= least_age_ms;
        double lived_ms = has_rate ? thread->age_ms : summary->window_ms;
        double percent = has_rate ? thread->cpu_ms / lived_ms * 100 : thread->cpu_percent;
        if (percent >= busy_percent) {
            bp_summary_find(summary, BP_SEVERITY_WARNING, "runtime-metrics.json",
                            "thread %" PRIu64 " \"%s\"%s used %.0f %% of one CPU for %.1f s",
                            thread->tid, thread->name, has_rate ? ", born in the window," : "",
                            percent, lived_ms / 1000);
        }
    }
}

static void find_limits(bp_summary *summary) {
    if (summary->has_open_files && summary->open_files_limit > 0 &&
        summary->open_files >= summary->open_files_limit - summary->open_files_limit / 10) {
        bp_summary_find(summary, BP_SEVERITY_CRITICAL, "process.json",
                        "%" PRIu64 " of at most %" PRIu64 " file descriptors are open",
                        summary->open_files, summary->open_files_limit);
    }
}

/* Memory, without bugpack's own, that rose by a quarter and 16 MiB from the first half of the
 * history to its end. */
static void find_growth(bp_summary *summary) {
    static const uint64_t least_kb = 16 << 10;
    size_t first = 0, last = summary->sample_count;
    while (first < last && !summary->samples[first].has_rss) {
        first++;
    }
    while (last > first && !summary->samples[last - 1].has_rss) {
        last--;
    }
    if (last - first < 10) {
        return;
    }
    const bp_summary_sample *from = &summary->samples[first], *to = &summary->samples[last - 1];
    const bp_summary_sample *middle = &summary->samples[first + (last - first) / 2];
    uint64_t from_kb = from->rss_kb - from->own_kb, to_kb = to->rss_kb - to->own_kb;
    uint64_t middle_kb = middle->rss_kb - middle->own_kb;
    if (to_kb >= from_kb + least_kb && to_kb / 5 >= from_kb / 4 && middle_kb > from_kb &&
        middle_kb < to_kb && to->wall_ns > from->wall_ns) {
        char own[48] = "";
        if (to->own_kb >> 10 > from->own_kb >> 10) {
            (void)snprintf(own, sizeof own, ", %" PRIu64 " MiB of it bugpack's",
                           (to->own_kb - from->own_kb) >> 10);
        }
        bp_summary_find(summary, BP_SEVERITY_WARNING, "metrics-history.jsonl",
                        "resident memory grew from %" PRIu64 " to %" PRIu64 " MiB in %.0f s%s",
                        from->rss_kb >> 10, to->rss_kb >> 10,
                        (double)(to->wall_ns - from->wall_ns) / 1e9, own);
    }
}

static void find_errors(bp_summary *summary) {
    if (summary->recent_error_count > 0) {
        bp_summary_find(summary, BP_SEVERITY_WARNING, "logs.jsonl",
                        "%" PRIu64 " error%s in the %d s before the trigger, the last: %s",
                        summary->recent_error_count, summary->recent_error_count == 1 ? "" : "s",
                        (int)(BP_SUMMARY_RECENT_NS / BP_NS_PER_SEC), summary->recent_error.message);
    }
}

/* The entries that only a running process can have. */
static const char *const live_entries[] = {"threads.json", "stacks.txt", "stacks.json",
                                           "files.json", "thread-heap.json"};
enum { live_entry_count = sizeof live_entries / sizeof live_entries[0] };

static void find_ended(bp_summary *summary, const bool *lacks) {
    char list[128] = "";
    size_t used = 0;
    for (size_t i = 0; i < live_entry_count; i++) {
        used += lacks[i] ? (size_t)snprintf(list + used, sizeof list - used, "%s%s",
                                            used > 0 ? ", " : "", live_entries[i])
                         : 0;
    }
    if (used > 0) {
        bp_summary_find(summary, BP_SEVERITY_INFO, "manifest.json",
                        "a process that has ended has none of these: %s", list);
    }
}

/* What is not in the report, or not whole. A complete report lacks only what was turned off, or
 * what there was not. */
static void find_missing(bp_summary *summary) {
    bool is_complete = bp_json_tree_is_true(summary->manifest, "complete");
    bool has_ended = bp_json_tree_object(summary->metadata, "exit") != NULL;
    bool lacks[live_entry_count] = {false};
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(summary->manifest, "artefacts"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *name = bp_json_tree_text_or(row, "name", "?"),
                   *status = bp_json_tree_text_or(row, "status", "?");
        bool is_cut = strcmp(status, "truncated") == 0;
        size_t at = has_ended && strcmp(status, "omitted") == 0 ? 0 : live_entry_count;
        while (at < live_entry_count && strcmp(name, live_entries[at]) != 0) {
            at++;
        }
        if (at < live_entry_count) {
            lacks[at] = true;
        } else if (strcmp(status, "ok") != 0 && strcmp(status, "disabled") != 0 &&
                   (is_cut || !is_complete)) {
            bp_summary_find(summary, is_complete ? BP_SEVERITY_INFO : BP_SEVERITY_WARNING, name,
                            "%.20s: %s", status,
                            bp_json_tree_text_or(row, "reason", "no reason is given"));
        }
    }
    find_ended(summary, lacks);
    if (summary->manifest == NULL) {
        bp_summary_find(summary, BP_SEVERITY_INFO, "manifest.json",
                        "not there: nothing says what is missing");
    }
}

static const struct {
    void (*find)(bp_summary *summary);
    bool is_of_each_process;
} rules[] = {{find_end, false},         {find_gap, false},    {find_triggers, false},
             {find_busy_threads, true}, {find_limits, true},  {find_growth, false},
             {find_errors, false},      {find_missing, false}};

/* Stable: findings of one severity stay in the order of the rules. */
static void sort(bp_summary *summary) {
    for (size_t i = 1; i < summary->finding_count; i++) {
        bp_finding finding = summary->findings[i];
        size_t at = i;
        for (; at > 0 && summary->findings[at - 1].severity > finding.severity; at--) {
            summary->findings[at] = summary->findings[at - 1];
        }
        summary->findings[at] = finding;
    }
}

void bp_summary_judge(bp_summary *summary) {
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        if (rules[i].is_of_each_process || summary->folder[0] == '\0') {
            rules[i].find(summary);
        }
    }
    sort(summary);
}
