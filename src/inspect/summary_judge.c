/* What the numbers of a report say together: the findings; and a summary that has them. */

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/diagnose.h"
#include "model/fields.h"

/* A control group that is near one of its limits, or had to kill. */
static void read_cgroup(bp_summary *summary, const bp_json_tree *cgroup) {
    static const struct {
        const char *group, *used, *max, *what;
    } limits[] = {{"memory", "current_bytes", "max_bytes", "bytes of memory"},
                  {"pids", "current", "max", "tasks"}};
    enum { throttled_min = 10 };
    char path[121];
    const bp_json_tree *cpu = bp_json_tree_object(cgroup, "cpu");
    uint64_t used, max, kills, periods, throttled;
    bp_utf8_copy(path, sizeof path, bp_json_tree_text_or(cgroup, "path", "?"));
    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++) {
        const bp_json_tree *group = bp_json_tree_object(cgroup, limits[i].group);
        if (bp_json_tree_uint(group, limits[i].used, &used) &&
            bp_json_tree_uint(group, limits[i].max, &max) && used >= max - max / 10) {
            bp_summary_find(summary, BP_DIAGNOSIS_CGROUP_LIMIT, NULL,
                            "the control group \"%s\" uses %" PRIu64 " of at most %" PRIu64 " %s",
                            path, used, max, limits[i].what);
        }
    }
    if (bp_json_tree_uint(cpu, "periods", &periods) &&
        bp_json_tree_uint(cpu, "throttled_periods", &throttled) && periods >= throttled_min &&
        throttled >= periods / 4) {
        bp_summary_find(summary, BP_DIAGNOSIS_THROTTLED, NULL,
                        "the control group \"%s\" had used up its share of CPU in %" PRIu64
                        " of %" PRIu64 " periods since it began",
                        path, throttled, periods);
    }
    if (bp_json_tree_uint(bp_json_tree_object(cgroup, "memory"), "oom_kills", &kills) &&
        kills > 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_CGROUP_KILLS, NULL,
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

static const double low_percent = 90;

static bool is_full(double used_percent, uint64_t left) {
    return used_percent >= 98 || left == 0;
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
        percent <= 100 && (percent >= low_percent || left == 0)) {
        int unit = left >= UINT64_C(1) << 30 ? 2 : left >= UINT64_C(1) << 20 ? 1 : 0;
        bp_summary_find(summary,
                        is_full(percent, left) ? BP_DIAGNOSIS_DISK_FULL : BP_DIAGNOSIS_DISK_LOW,
                        NULL, "the file system of %s is %d %% full: %.1f %ciB are left", places,
                        (int)percent, (double)left / (double)(1 << 10 * (unit + 1)), "KMG"[unit]);
    }
    if (bp_json_tree_uint(filesystem, "total_inodes", &total) &&
        bp_json_tree_uint(filesystem, "free_inodes", &left) && left <= total && total > 0) {
        percent = 100.0 * (double)(total - left) / (double)total;
        if (percent >= low_percent) {
            bp_summary_find(
                summary,
                is_full(percent, left) ? BP_DIAGNOSIS_INODES_FULL : BP_DIAGNOSIS_INODES_LOW, NULL,
                "the file system of %s has %" PRIu64 " of %" PRIu64 " inodes left", places, left,
                total);
        }
    }
}

void bp_summary_read_system(bp_summary *summary, const bp_json_tree *system) {
    const bp_json_tree *memory = bp_json_tree_object(system, "memory");
    uint64_t total_kb, available_kb;
    bp_machine_read_system(&summary->machine, system);
    if (bp_json_tree_uint(memory, "total_kb", &total_kb) &&
        bp_json_tree_uint(memory, "available_kb", &available_kb) && available_kb < total_kb / 20) {
        bp_summary_find(summary, BP_DIAGNOSIS_MEMORY_LOW, NULL,
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

/* What a shell means by an exit status (POSIX.1-2017, 2.8.2); "" for one that is the program's. */
static const char *explain_status(uint64_t status, char *out, size_t out_bytes) {
    if (status == 127) {
        return ", a shell's word for a command that was not found";
    }
    if (status == 126) {
        return ", a shell's word for a command that cannot be executed";
    }
    const char *signal =
        status > 128 && status < 160 ? bp_model_signal_name((int)status - 128) : NULL;
    if (signal == NULL) {
        return "";
    }
    (void)snprintf(out, out_bytes, ", a shell's word for a child that died of %s", signal);
    return out;
}

static void find_end(bp_summary *summary) {
    const bp_json_tree *end = bp_json_tree_object(summary->metadata, "exit");
    char signal[BP_SUMMARY_SIGNAL_BYTES], words[96];
    uint64_t status;
    if (bp_summary_signal(summary, signal)) {
        bp_summary_find(summary, BP_DIAGNOSIS_KILLED, NULL, "it died of %s%s", signal,
                        bp_json_tree_is_true(end, "core_dumped") ? " (core dumped)" : "");
    } else if (bp_json_tree_uint(end, "status", &status) && status != 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_EXIT_STATUS, NULL,
                        "it ended with exit status %" PRIu64 "%s", status,
                        explain_status(status, words, sizeof words));
    } else if (strcmp(bp_json_tree_text_or(summary->metadata, "session_end", ""), "died") == 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_DIED, NULL,
                        "the process died; its rings were recovered");
    }
}

static void find_gap(bp_summary *summary) {
    const char *key = bp_json_tree_text(summary->metadata, "gap_key");
    if (key != NULL) {
        bp_summary_find(summary, BP_DIAGNOSIS_GAP, NULL, "the first occurrence of the gap \"%s\"",
                        key);
    }
}

/* Automatic triggers shortly before the one of this report, which are listed below the findings. */
static void find_triggers(bp_summary *summary) {
    size_t near_count = 0;
    uint64_t newest_ns = 0, now_ns = summary->triggered_wall_ns;
    char newest[121] = "";
    const char *own_key = bp_json_tree_text_or(
        summary->metadata, "gap_key", bp_json_tree_text_or(summary->metadata, "channel", ""));
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(summary->manifest, "triggers"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *type = bp_json_tree_text_or(row, "report_type", ""),
                   *key = bp_json_tree_text_or(row, "key", "");
        const char *last = bp_json_tree_text(row, "last");
        uint64_t last_ns = 0;
        bool is_near = last != NULL && now_ns != 0 && bp_clock_parse(last, &last_ns) &&
                       last_ns <= now_ns && now_ns - last_ns <= BP_SUMMARY_RECENT_NS;
        if (is_near && strcmp(type, "auto-snapshot") != 0 && strcmp(key, own_key) != 0) {
            near_count++;
            if (last_ns >= newest_ns) {
                newest_ns = last_ns;
                bp_utf8_copy(newest, sizeof newest, key);
            }
        }
    }
    if (near_count > 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_TRIGGERS, NULL,
                        "%zu other gap%s or disconnect%s in the %d s before the trigger, the last "
                        "%.1f s before: \"%s\"",
                        near_count, near_count == 1 ? "" : "s", near_count == 1 ? "" : "s",
                        (int)(BP_SUMMARY_RECENT_NS / BP_NS_PER_SEC),
                        (double)(now_ns - newest_ns) / 1e9, newest);
    }
}

/*
 * A thread is busy that used nearly all of the window, or of its own time if it was born in it; and
 * on a machine with too few processors one that used some of it, and was ready to run for the rest.
 */
static void find_busy_threads(bp_summary *summary) {
    static const double busy_percent = 90, starved_percent = 20, least_ms = 250;
    for (size_t i = 0; i < summary->listed_count; i++) {
        const bp_summary_thread *thread = &summary->threads[i];
        bool has_rate = thread->is_born && thread->age_ms >= least_ms;
        double lived_ms = has_rate ? thread->age_ms : summary->window_ms;
        double percent = has_rate ? thread->cpu_ms / lived_ms * 100 : thread->cpu_percent;
        bool is_starved = thread->never_slept && !thread->is_born && percent < busy_percent &&
                          percent >= starved_percent && lived_ms >= least_ms;
        bool is_in_kernel = thread->system_ms * 4 >= thread->cpu_ms && thread->cpu_ms > 0;
        char share[64] = "";
        if (percent < busy_percent && !is_starved) {
            continue;
        }
        if (is_in_kernel) {
            (void)snprintf(share, sizeof share, ", %.0f %% of it in system calls",
                           thread->system_ms / thread->cpu_ms * 100);
        }
        bp_summary_find(summary, is_in_kernel ? BP_DIAGNOSIS_SPIN_CALLS : BP_DIAGNOSIS_SPIN, NULL,
                        "thread %" PRIu64 " \"%s\"%s used %.0f %% of one CPU for %.1f s%s%s",
                        thread->tid, thread->name, has_rate ? ", born in the window," : "", percent,
                        lived_ms / 1000, share,
                        is_starved ? ", and was ready to run for the rest" : "");
    }
}

static void find_limits(bp_summary *summary) {
    if (summary->has_open_files && summary->open_files_limit > 0 &&
        summary->open_files >= summary->open_files_limit - summary->open_files_limit / 10) {
        bp_summary_find(summary, BP_DIAGNOSIS_FD_LIMIT, NULL,
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
        bp_summary_find(summary, BP_DIAGNOSIS_MEMORY_GROWTH, NULL,
                        "resident memory grew from %" PRIu64 " to %" PRIu64 " MiB in %.0f s%s",
                        from->rss_kb >> 10, to->rss_kb >> 10,
                        (double)(to->wall_ns - from->wall_ns) / 1e9, own);
    }
}

static void find_errors(bp_summary *summary) {
    if (summary->recent_error_count > 0) {
        bp_summary_find(summary, BP_DIAGNOSIS_LOG_ERRORS, NULL,
                        "%" PRIu64 " error%s in the %d s before the trigger, the last: %s",
                        summary->recent_error_count, summary->recent_error_count == 1 ? "" : "s",
                        (int)(BP_SUMMARY_RECENT_NS / BP_NS_PER_SEC), summary->recent_error.message);
    }
}

/* Whether a manifest line says that something is lost. What an entry could not have is in the
 * manifest alone: a complete report lacks only what was turned off or was not there, and a process
 * that has ended has no more threads. */
static bool is_loss(const bp_summary *summary, const bp_json_tree *line) {
    const char *status = bp_json_tree_text_or(line, "status", "?");
    bool has_ended = bp_json_tree_object(summary->metadata, "exit") != NULL;
    return strcmp(status, "ok") != 0 && strcmp(status, "disabled") != 0 &&
           !(has_ended && (strcmp(status, "omitted") == 0 || strcmp(status, "truncated") == 0));
}

/* Entries that are lost, those of one reason in one finding. */
static void find_missing(bp_summary *summary) {
    const bp_json_tree *lines = bp_json_tree_array(summary->manifest, "artefacts");
    if (summary->manifest == NULL) {
        bp_summary_find(summary, BP_DIAGNOSIS_NO_MANIFEST, NULL,
                        "not there: nothing says what is missing");
    }
    if (bp_json_tree_is_true(summary->manifest, "complete")) {
        return;
    }
    enum { looked_at_max = BP_SUMMARY_FINDING_MAX }; /* each is compared with all others */
    size_t looked_at = 0;
    for (const bp_json_tree *line = bp_json_tree_first(lines);
         line != NULL && looked_at < looked_at_max; line = bp_json_tree_next(line)) {
        const char *reason = bp_json_tree_text_or(line, "reason", "no reason is given");
        const bp_json_tree *other = bp_json_tree_first(lines);
        size_t more_count = 0;
        char more[32] = "";
        if (!is_loss(summary, line)) {
            continue;
        }
        looked_at++;
        while (other != line && (!is_loss(summary, other) ||
                                 strcmp(bp_json_tree_text_or(other, "reason", ""), reason) != 0)) {
            other = bp_json_tree_next(other);
        }
        if (other != line) {
            continue; /* said already */
        }
        for (other = bp_json_tree_next(line); other != NULL; other = bp_json_tree_next(other)) {
            more_count += is_loss(summary, other) &&
                          strcmp(bp_json_tree_text_or(other, "reason", ""), reason) == 0;
        }
        if (more_count > 0) {
            (void)snprintf(more, sizeof more, ", and %zu more entr%s", more_count,
                           more_count == 1 ? "y" : "ies");
        }
        bp_summary_find(summary, BP_DIAGNOSIS_MISSING, bp_json_tree_text_or(line, "name", "?"),
                        "%.20s%s: %s", bp_json_tree_text_or(line, "status", "?"), more, reason);
    }
}

static const struct {
    void (*find)(bp_summary *summary);
    bool is_of_each_process;
} rules[] = {{find_end, false},         {find_gap, false},     {find_triggers, false},
             {find_busy_threads, true}, {find_limits, true},   {find_growth, false},
             {find_errors, false},      {find_missing, false}, {bp_diagnose_find, true}};

/* By the order of the diagnoses, within a severity; stable. */
static void sort(bp_summary *summary) {
    for (size_t i = 1; i < summary->finding_count; i++) {
        bp_finding finding = summary->findings[i];
        size_t at = i;
        for (; at > 0 && bp_finding_comes_before(&finding, &summary->findings[at - 1]); at--) {
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
