#include "compare/diff.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "base/utf8.h"
#include "entries/call_tree.h"
#include "entries/json_lines.h"
#include "model/entry.h"

/* For one entry: a capture of some 100,000 threads. */
static const uint64_t entry_max_bytes = (uint64_t)256 << 20;

static const char profile_name[] = "profile.folded";

/* cpu_percent says the same, for any window. */
#define OVER_WINDOW                                                                                \
    "cpu_ms born_in_window age_ms user_ms system_ms voluntary_switches involuntary_switches "      \
    "rss_samples uptime_secs"

/* Members of entries that do not differ in each report. An entry may have several rows. */
static const bp_json_diff_rule rules[] = {
    {"metadata.json", "app platform tags exit", ""},
    {"manifest.json", "triggers artefacts",
     "first last reports written last_duration_ms longest_duration_ms bytes sha256 original_bytes "
     "captured_at duration_ms covers redactions note"},
    {"runtime-metrics.json", "available reason process threads", OVER_WINDOW},
    {"process.json", "", "pid parent_pid started_at start_ticks boot_id address state"},
    {"heap-state.json", "", ""},
    {"session.json", "", ""},
    {"channel-state.json", "", ""},
    {"system.json", "distribution kernel cpus container swap cgroups pressure", ""},
    {"host-threads.json", "cgroups pressure", ""},
    /* CPU time and memory of each thread. */
    {"host-threads.json", "threads",
     "tgid start_ticks kernel_thread self window scheduling stat status io sched wakeups waits "
     "blocks smaps_rollup run_delay_ns timeslices scheduling_measured stat_measured "
     "schedstat_measured status_measured io_measured sched_measured wakeups_measured "
     "waits_measured blocks_measured smaps_rollup_measured heap_measured"}};
enum { rule_count = sizeof rules / sizeof rules[0] };

/* A thread of another process has another id. */
static const bp_json_diff_rule metrics_of_another = {
    "runtime-metrics.json", "available reason process threads", "tid " OVER_WINDOW};

static const bp_json_diff_rule profile_rule = {profile_name, "", ""};
static const bp_json_diff_rule document_rule = {"document", "", ""};

/* A process of a report. */
typedef struct diff_process {
    const char *folder; /* it begins the name of an entry, which is the report's */
    int folder_bytes;   /* 0: the first process */
    char key[BP_REPORT_KEY_BYTES], name[64];
    const struct diff_process *other; /* that of the other report; NULL: there is none */
} diff_process;

enum { process_max = 512, entry_name_bytes = 160 };

static void print_entry_name(const diff_process *process, const char *entry,
                             char out[entry_name_bytes]) {
    (void)snprintf(out, entry_name_bytes, "%.*s%s", process->folder_bytes, process->folder, entry);
}

static size_t list_processes(const bp_report_file *report, diff_process rows[process_max]) {
    size_t count = 1; /* the entries of a process follow each other */
    rows[0] = (diff_process){.folder = ""};
    for (size_t i = 0; i < bp_report_file_count(report) && count < process_max; i++) {
        const char *entry = bp_report_file_name(report, i);
        size_t length = bp_entry_folder_bytes(entry);
        if (length > 0 && length < 96 && strncmp(entry, rows[count - 1].folder, length) != 0) {
            rows[count++] = (diff_process){.folder = entry, .folder_bytes = (int)length};
        }
    }
    for (size_t i = 0; i < count; i++) {
        static const bp_json_tree_list no_lists[] = {{NULL, NULL, false}};
        bp_json_tree *process = NULL;
        char entry[entry_name_bytes];
        print_entry_name(&rows[i], "process.json", entry);
        if (bp_report_file_has(report, entry, NULL) &&
            bp_report_file_each(report, entry, no_lists, NULL, &process, NULL) == BUGPACK_OK) {
            bp_report_process_key(process, rows[i].key);
            bp_utf8_copy(rows[i].name, sizeof rows[i].name, bp_json_tree_text(process, "name"));
        }
        bp_json_tree_free(process);
    }
    return count;
}

/* Each with the same process, or else one of the same name; both first ones, if they have none. */
static void pair_processes(diff_process *before, size_t before_count, diff_process *after,
                           size_t after_count) {
    static const size_t places[] = {offsetof(diff_process, key), offsetof(diff_process, name)};
    for (size_t round = 0; round < sizeof places / sizeof places[0]; round++) {
        for (size_t i = 0; i < before_count; i++) {
            const char *text = (const char *)&before[i] + places[round];
            for (size_t j = 0; j < after_count && before[i].other == NULL; j++) {
                bool is_same = strcmp(text, (const char *)&after[j] + places[round]) == 0;
                if (is_same && text[0] != '\0' && after[j].other == NULL) {
                    before[i].other = &after[j];
                    after[j].other = &before[i];
                }
            }
        }
    }
    if (before[0].other == NULL && after[0].other == NULL) {
        before[0].other = &after[0];
    }
}

static bool is_one_process(const bp_diff *diff, const diff_process *process) {
    const bp_json_tree *before = bp_report_file_metadata(diff->before.report);
    const bp_json_tree *after = bp_report_file_metadata(diff->after.report);
    const char *session = bp_json_tree_text_or(before, "session_id", "");
    const char *start = bp_json_tree_text_or(before, "started_at", "");
    uint64_t pids[2];
    if (process->key[0] != '\0' && process->other->key[0] != '\0') {
        return strcmp(process->key, process->other->key) == 0;
    }
    if (process->folder_bytes > 0 || process->other->folder_bytes > 0) {
        return false; /* metadata.json is about the first ones */
    }
    if (session[0] != '\0' && strcmp(session, bp_json_tree_text_or(after, "session_id", "")) == 0) {
        return true;
    }
    /* Each report that is taken from outside has a session of its own. */
    return start[0] != '\0' && strcmp(start, bp_json_tree_text_or(after, "started_at", "")) == 0 &&
           bp_json_tree_uint(before, "pid", &pids[0]) &&
           bp_json_tree_uint(after, "pid", &pids[1]) && pids[0] == pids[1];
}

static bugpack_status give_file(const void *context, bp_sink *sink, void *sink_context,
                                bugpack_error *error) {
    const bp_diff_side *side = context;
    char piece[64 * 1024];
    bugpack_status status = BUGPACK_OK;
    int64_t count = 1;
    for (uint64_t at = 0; status == BUGPACK_OK && count > 0; at += (uint64_t)count) {
        count = bp_file_read_range(side->fd, piece, sizeof piece, at);
        if (count < 0) {
            return bp_fail_errno(error, errno, "cannot read \"%s\"", side->path);
        }
        if (count > 0) {
            status = sink(sink_context, piece, (size_t)count);
        }
    }
    return status;
}

static bugpack_status give_buffer(const void *context, bp_sink *sink, void *sink_context,
                                  bugpack_error *error) {
    const bp_buffer *text = context;
    (void)error;
    return sink(sink_context, bp_buffer_text(text), text->size);
}

/* Reads a document, and says of which file one is that cannot be read. */
static bugpack_status read_document(bp_diff_side *side, const bp_giver *giver,
                                    const bp_json_diff_rule *rule, uint32_t *ret_root,
                                    bugpack_error *error) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bugpack_status status = bp_json_side_read(&side->documents, giver, rule, ret_root, &detail);
    if (status == BUGPACK_ERR_CORRUPT && side->report == NULL) {
        return bp_fail(error, status, "\"%s\" is neither a report nor JSON: %s", side->path,
                       detail.message);
    }
    return status == BUGPACK_OK ? status
                                : bp_fail(error, status, "\"%s\": %s", side->path, detail.message);
}

/* --- where the CPU time went -------------------------------------------------------------- */

/* Appends a function, with its share of the samples, to the documents of both profiles. */
static void add_function(const bp_call_tree profiles[2], const char *function, bool is_first,
                         bp_buffer texts[2]) {
    char label[BP_CALL_TREE_LABEL_BYTES];
    bp_utf8_copy(label, sizeof label, function);
    for (size_t i = 0; i < 2; i++) {
        double share = (double)bp_call_tree_self(&profiles[i], function) /
                       (double)bp_call_tree_samples(&profiles[i]);
        (void)bp_buffer_append_text(&texts[i], is_first ? "{\"name\":" : ",{\"name\":");
        (void)bp_json_append_string(&texts[i], label, strlen(label));
        (void)bp_buffer_printf(&texts[i], ",\"self_percent\":%.1f}", 100 * share);
    }
}

/* Makes documents of the functions that have most of either profile. */
static void describe_profiles(const bp_call_tree profiles[2], bp_buffer texts[2]) {
    enum { top_max = 20 };
    const bp_call_name *top[2][top_max];
    size_t counts[2];
    for (size_t i = 0; i < 2; i++) {
        counts[i] = bp_call_tree_top(&profiles[i], top[i], top_max);
        (void)bp_buffer_append_text(&texts[i], "{\"functions\":[");
    }
    for (size_t i = 0; i < counts[0]; i++) {
        add_function(profiles, bp_call_tree_text(&profiles[0], top[0][i]), i == 0, texts);
    }
    for (size_t i = 0; i < counts[1]; i++) {
        const char *function = bp_call_tree_text(&profiles[1], top[1][i]);
        size_t j = 0;
        while (j < counts[0] && strcmp(bp_call_tree_text(&profiles[0], top[0][j]), function) != 0) {
            j++;
        }
        if (j == counts[0]) {
            add_function(profiles, function, counts[0] + i == 0, texts);
        }
    }
    (void)bp_buffer_append_text(&texts[0], "]}");
    (void)bp_buffer_append_text(&texts[1], "]}");
}

static bugpack_status read_profiles(bp_diff *diff, uint32_t roots[2], bugpack_error *error) {
    bp_diff_side *sides[2] = {&diff->before, &diff->after};
    bp_call_tree profiles[2] = {{.node_count = 0}, {.node_count = 0}};
    bp_buffer texts[2];
    bool has_samples = true;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < 2; i++) {
        bp_buffer_init(&texts[i], (size_t)1 << 20);
        if (has_samples && status == BUGPACK_OK &&
            bp_report_file_has(sides[i]->report, profile_name, NULL)) {
            status = bp_report_lines(sides[i]->report, profile_name, entry_max_bytes,
                                     bp_call_tree_add, &profiles[i], error);
            if (status == BUGPACK_OK && bp_call_tree_end(&profiles[i]) != BUGPACK_OK) {
                status = bp_fail_memory(error, "compare two reports");
            }
        }
        has_samples = has_samples && bp_call_tree_samples(&profiles[i]) > 0;
    }
    if (has_samples && status == BUGPACK_OK) {
        describe_profiles(profiles, texts);
    }
    for (size_t i = 0; i < 2; i++) {
        const bp_giver giver = {.give = give_buffer, .context = &texts[i]};
        if (has_samples && status == BUGPACK_OK) {
            status = read_document(sides[i], &giver, &profile_rule, &roots[i], error);
        }
        bp_call_tree_release(&profiles[i]);
    }
    bp_buffer_release(&texts[0]);
    bp_buffer_release(&texts[1]);
    return status;
}

/* --- both sides --------------------------------------------------------------------------- */

/* Two documents. */
typedef struct compared_entry {
    const char *name; /* NULL: only one report has it */
    uint32_t roots[2];
} compared_entry;

/* Reads an entry of a process where both reports have it. */
static bugpack_status read_entry(bp_diff *diff, const diff_process *process,
                                 const bp_json_diff_rule *rule, compared_entry *ret_entry,
                                 bugpack_error *error) {
    bp_diff_side *sides[2] = {&diff->before, &diff->after};
    const diff_process *processes[2] = {process, process->other};
    char names[2][entry_name_bytes];
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < 2; i++) {
        print_entry_name(processes[i], rule->entry, names[i]);
        if (!bp_report_file_has(sides[i]->report, names[i], NULL)) {
            return BUGPACK_OK;
        }
    }
    for (size_t i = 0; i < 2 && status == BUGPACK_OK; i++) {
        const bp_report_entry from = {sides[i]->report, names[i], entry_max_bytes};
        const bp_giver giver = {.give = bp_report_entry_give, .context = &from};
        status = read_document(sides[i], &giver, rule, &ret_entry->roots[i], error);
    }
    ret_entry->name = rule->entry;
    for (size_t i = 0;
         process->other->folder_bytes > 0 && i < bp_report_file_count(diff->after.report); i++) {
        const char *name = bp_report_file_name(diff->after.report, i);
        ret_entry->name = strcmp(name, names[1]) == 0 ? name : ret_entry->name;
    }
    return status;
}

/* All entries of the first processes, and of the others those of a process. */
static bugpack_status read_process(bp_diff *diff, const diff_process *process,
                                   compared_entry entries[rule_count], bugpack_error *error) {
    static const char *const of_each[] = {"runtime-metrics.json", "process.json", NULL};
    bool is_first = process->folder_bytes == 0 && process->other->folder_bytes == 0;
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; i < rule_count && status == BUGPACK_OK; i++) {
        bool is_metrics = strcmp(rules[i].entry, metrics_of_another.entry) == 0;
        bool is_other = is_metrics && !is_one_process(diff, process);
        if (is_first || bp_array_has_text(of_each, rules[i].entry)) {
            status = read_entry(diff, process, is_other ? &metrics_of_another : &rules[i],
                                &entries[i], error);
        }
    }
    return status;
}

static bugpack_status compare_reports(bp_diff *diff, bugpack_error *error) {
    diff_process *processes = calloc(2 * process_max, sizeof *processes);
    diff_process *after = processes + process_max;
    compared_entry *entries = calloc(process_max * rule_count + 1, sizeof *entries);
    bugpack_status status = processes == NULL || entries == NULL
                                ? bp_fail_memory(error, "compare two reports")
                                : BUGPACK_OK;
    size_t count = 0, entry_count = 0;
    if (status == BUGPACK_OK) {
        count = list_processes(diff->before.report, processes);
        pair_processes(processes, count, after, list_processes(diff->after.report, after));
    }
    for (size_t i = 0; i < count && status == BUGPACK_OK; i++) {
        if (processes[i].other != NULL) {
            status = read_process(diff, &processes[i], &entries[entry_count], error);
            entry_count += rule_count;
        }
        if (processes[i].other == after && status == BUGPACK_OK && i == 0) {
            entries[entry_count].name = profile_name;
            status = read_profiles(diff, entries[entry_count++].roots, error);
        }
    }
    for (size_t i = 0; i < entry_count && status == BUGPACK_OK; i++) {
        if (entries[i].roots[0] != 0) {
            status =
                bp_json_diff(&diff->before.documents, entries[i].roots[0], &diff->after.documents,
                             entries[i].roots[1], entries[i].name, &diff->changes, error);
        }
    }
    free(entries);
    free(processes);
    return status;
}

static bugpack_status compare_documents(bp_diff *diff, bugpack_error *error) {
    const bp_giver before = {.give = give_file, .context = &diff->before};
    const bp_giver after = {.give = give_file, .context = &diff->after};
    uint32_t roots[2];
    bugpack_status status = read_document(&diff->before, &before, &document_rule, &roots[0], error);
    if (status == BUGPACK_OK) {
        status = read_document(&diff->after, &after, &document_rule, &roots[1], error);
    }
    return status != BUGPACK_OK
               ? status
               : bp_json_diff(&diff->before.documents, roots[0], &diff->after.documents, roots[1],
                              document_rule.entry, &diff->changes, error);
}

/* To be released whatever is returned. */
static bugpack_status open_side(bp_diff_side *side, const char *path, bugpack_error *error) {
    *side = (bp_diff_side){.path = path, .fd = -1};
    bp_json_side_init(&side->documents);
    return bp_report_file_open_or_plain(path, &side->report, &side->fd, error);
}

static void release_side(bp_diff_side *side) {
    if (side->report == NULL) {
        bp_file_close(side->fd);
    }
    bp_report_file_close(side->report);
    bp_json_side_release(&side->documents);
}

void bp_diff_release(bp_diff *diff) {
    release_side(&diff->before);
    release_side(&diff->after);
    bp_json_changes_release(&diff->changes);
}

bugpack_status bp_diff_compute(const char *before_path, const char *after_path, bp_diff *ret_diff,
                               bugpack_error *error) {
    bp_diff diff = {.after.fd = -1};
    bugpack_status status = open_side(&diff.before, before_path, error);
    if (status == BUGPACK_OK) {
        status = open_side(&diff.after, after_path, error);
    }
    if (status == BUGPACK_OK && (diff.before.report == NULL) != (diff.after.report == NULL)) {
        status = bp_fail(error, BUGPACK_ERR_CORRUPT,
                         "\"%s\" is no report, and \"%s\" is one: both must be",
                         diff.before.report == NULL ? before_path : after_path,
                         diff.before.report == NULL ? after_path : before_path);
    } else if (status == BUGPACK_OK) {
        status = diff.before.report != NULL ? compare_reports(&diff, error)
                                            : compare_documents(&diff, error);
    }
    if (status != BUGPACK_OK) {
        bp_diff_release(&diff);
        return status;
    }
    *ret_diff = diff;
    return BUGPACK_OK;
}
