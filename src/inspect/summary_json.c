/* A summary as JSON: whole, and as a line of an index, which is flat, so that any table takes it.
 */

#include <string.h>

#include "base/status.h"
#include "inspect/summary.h"
#include "model/fields.h"
#include "model/metadata.h"
#include "json/json.h"

/* Members that have the same name here as in the document they are from. */
static void add_texts(bp_json *json, const bp_json_tree *from, const char *const *keys,
                      size_t count) {
    for (size_t i = 0; i < count; i++) {
        bp_json_add_text(json, keys[i], bp_json_tree_text(from, keys[i]));
    }
}

static void add_app(bp_json *json, const bp_summary *summary) {
    const bp_json_tree *app = bp_json_tree_object(summary->metadata, "app");
    bp_json_add_text(json, "app", bp_json_tree_text(app, "name"));
    bp_json_add_text(json, "version", bp_json_tree_text(app, "version"));
    bp_json_add_text(json, "build_id", bp_json_tree_text(app, "build_id"));
}

static void add_report(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"report_id",  "session_id", "report_type", "session_end",
                                       "gap_key",    "channel",    "description", "triggered_at",
                                       "started_at", "machine"};
    uint64_t pid;
    bp_json_object_begin(json, "report");
    bp_json_add_text(json, "path", summary->path);
    bp_json_quote(json, true);
    add_app(json, summary);
    add_texts(json, summary->metadata, keys, sizeof keys / sizeof keys[0]);
    if (bp_json_tree_uint(summary->metadata, "pid", &pid)) {
        bp_json_add_uint(json, "pid", pid);
    }
    bp_model_add_known_text(json, "process", summary->process_name);
    bp_json_object_end(json);
}

/* `is_brief`: what each diagnosis says of all reports is left out. */
static void add_findings(bp_json *json, const bp_summary *summary, bool is_brief) {
    bp_json_array_begin(json, "findings");
    for (size_t i = 0; i < summary->findings->count; i++) {
        const bp_finding *finding = &summary->findings->rows[i];
        const bp_diagnosis_row *diagnosis = &bp_diagnoses[finding->diagnosis];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "id", diagnosis->id);
        bp_json_add_text(json, "severity", bp_severity_name(diagnosis->severity));
        bp_json_add_text(json, "entry", finding->entry);
        bp_model_add_known_text(json, "path", diagnosis->path);
        bp_json_add_text(json, "text", finding->text);
        bp_model_add_known_text(json, "next", is_brief ? NULL : diagnosis->next);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_known_number(bp_json *json, const char *key, bool is_known, double value,
                             unsigned decimals) {
    if (is_known) {
        bp_json_add_number(json, key, value, decimals);
    }
}

static void add_use(bp_json *json, const bp_summary_use *use) {
    add_known_number(json, "cpu_percent", use->has_metrics, use->cpu_percent, 2);
    bp_model_add_known_uint(json, "thread_count", use->has_metrics, use->thread_count);
    bp_model_add_known_uint(json, "rss_kb", use->has_rss, use->rss_kb);
}

static void add_uptime(bp_json *json, const bp_summary_use *use) {
    add_known_number(json, "uptime_secs", use->has_uptime, use->uptime_secs, 3);
}

static void add_process(bp_json *json, const bp_summary *summary) {
    bp_json_object_begin(json, "process");
    add_known_number(json, "sample_window_ms", summary->use.has_metrics, summary->window_ms, 3);
    add_use(json, &summary->use);
    add_uptime(json, &summary->use);
    bp_model_add_known_uint(json, "open_files", summary->has_open_files, summary->open_files);
    bp_model_add_known_uint(json, "open_files_limit", summary->open_files_limit > 0,
                            summary->open_files_limit);
    bp_json_object_end(json);
    bp_json_array_begin(json, "busiest_threads");
    for (size_t i = 0; i < summary->listed_count; i++) {
        const bp_summary_thread *thread = &summary->threads[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_uint(json, "tid", thread->tid);
        bp_json_add_text(json, "name", thread->name);
        bp_json_add_number(json, "cpu_percent", thread->cpu_percent, 2);
        add_known_number(json, "cpu_ms", thread->cpu_ms >= 0, thread->cpu_ms, 3);
        bp_model_add_flag(json, "born_in_window", thread->is_born);
        bp_model_add_known_text(json, "state", thread->state);
        bp_model_add_known_text(json, "syscall", thread->syscall);
        bp_model_add_known_text(json, "waits_for", thread->waits_for);
        bp_model_add_known_text(json, "frames", thread->frames);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_processes(bp_json *json, const bp_summary *summary) {
    bp_json_array_begin(json, "further_processes");
    for (size_t i = 0; i < summary->process_count; i++) {
        const bp_summary_process *process = &summary->processes[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "folder", process->folder);
        bp_model_add_known_text(json, "name", process->name);
        bp_model_add_known_uint(json, "pid", process->pid > 0, process->pid);
        add_use(json, &process->use);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_history(bp_json *json, const bp_summary *summary) {
    bp_json_array_begin(json, "history");
    for (size_t i = 0; i < summary->sample_count; i++) {
        const bp_sample *sample = &summary->samples[i];
        bp_json_object_begin(json, NULL);
        bp_model_add_time(json, "time", sample->wall_ns);
        bp_json_add_number(json, "cpu_percent", sample->cpu_percent_100 / 100.0, 2);
        bp_model_add_known_uint(json, "rss_kb", sample->has_rss, sample->rss_kb);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_heap(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"allocated_bytes", "resident_bytes"};
    bp_json_object_begin(json, "heap");
    bp_model_add_known_text(json, "allocator", summary->allocator);
    for (size_t i = 0; i < 2; i++) {
        bp_model_add_known_uint(json, keys[i], summary->has_heap[i], summary->heap_bytes[i]);
    }
    bp_json_object_end(json);
}

static void add_triggers(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"report_type", "key", "first", "last", "reason"};
    bp_json_array_begin(json, "triggers");
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(summary->manifest, "triggers"));
         row != NULL; row = bp_json_tree_next(row)) {
        uint64_t count = 0, reports = 0;
        (void)bp_json_tree_uint(row, "count", &count);
        (void)bp_json_tree_uint(row, "reports", &reports);
        bp_json_object_begin(json, NULL);
        add_texts(json, row, keys, sizeof keys / sizeof keys[0]);
        bp_json_add_uint(json, "count", count);
        bp_json_add_uint(json, "reports", reports);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_log(bp_json *json, const bp_summary *summary) {
    bp_json_object_begin(json, "log");
    bp_json_object_begin(json, "counts");
    for (int level = BUGPACK_LEVEL_TRACE; level <= BUGPACK_LEVEL_FATAL; level++) {
        bp_json_add_uint(json, bp_level_name((uint8_t)level), summary->level_counts[level]);
    }
    bp_json_object_end(json);
    bp_json_array_begin(json, "newest_warnings");
    for (size_t age = BP_SUMMARY_RECORD_MAX; age-- > 0;) {
        const bp_summary_record *record = bp_summary_newest(summary, age);
        if (record != NULL) {
            bp_json_object_begin(json, NULL);
            if (record->wall_ns != 0) {
                bp_model_add_time(json, "time", record->wall_ns);
            }
            bp_json_add_text(json, "level", bp_level_name((uint8_t)record->level));
            bp_model_add_known_text(json, "channel", record->channel);
            bp_json_add_text(json, "message", record->message);
            bp_json_object_end(json);
        }
    }
    bp_json_array_end(json);
    bp_json_object_end(json);
}

static void add_traffic(bp_json *json, const bp_summary *summary) {
    static const char *const ways[] = {"sent", "received"};
    bp_json_array_begin(json, "traffic");
    for (size_t i = 0; i < summary->channel_count; i++) {
        const bp_summary_channel *channel = &summary->channels[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "channel", channel->name);
        for (size_t way = 0; way < 2; way++) {
            bp_json_object_begin(json, ways[way]);
            bp_json_add_uint(json, "messages", channel->messages[way]);
            bp_json_add_uint(json, "bytes", channel->bytes[way]);
            bp_json_object_end(json);
        }
        if (bp_summary_channel_is_partial(channel)) {
            bp_json_add_bool(json, "at_least", true);
            bp_json_add_uint(json, "recorded", channel->recorded_count);
        }
        if (channel->last_wall_ns != 0) {
            bp_model_add_time(json, "last", channel->last_wall_ns);
        }
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_tasks(bp_json *json, const char *key, const bp_machine_list *list,
                      bool is_process) {
    bp_json_array_begin(json, key);
    for (size_t i = 0; i < list->count; i++) {
        const bp_machine_task *task = &list->rows[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_uint(json, "pid", task->pid);
        if (!is_process) {
            bp_json_add_uint(json, "tid", task->tid);
            bp_model_add_known_text(json, "process", task->process);
        }
        bp_model_add_known_text(json, "name", task->name);
        add_known_number(json, "cpu_percent", task->has_percent, task->cpu_percent, 2);
        bp_model_add_flag(json, "born_in_window", task->is_born);
        add_known_number(json, "children_cpu_ms", task->children_cpu_ms > 0, task->children_cpu_ms,
                         3);
        bp_model_add_known_uint(json, "cpu_ns", task->has_cpu, task->cpu_ns);
        if (!is_process) {
            bp_json_add_text(json, "state", bp_machine_state_name(task));
        } else {
            bp_json_add_uint(json, "thread_count", task->thread_count);
            bp_json_add_uint(json, "running_threads", task->running_count);
        }
        bp_model_add_known_uint(json, "rss_kb", task->has_rss, task->rss_kb);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_machine(bp_json *json, const bp_machine *machine) {
    static const char *const averages[] = {"avg1", "avg5", "avg15"};
    if (!machine->is_there) {
        return;
    }
    bp_json_object_begin(json, "machine");
    bp_model_add_known_text(json, "captured_at", machine->captured_at);
    bp_json_add_uint(json, "processes", machine->process_count);
    bp_json_add_uint(json, "denied_processes", machine->denied_process_count);
    bp_json_add_uint(json, "threads", machine->thread_count);
    bp_json_add_uint(json, "kernel_threads", machine->kernel_thread_count);
    bp_json_add_uint(json, "running_threads", machine->running_count);
    bp_json_add_uint(json, "blocked_threads", machine->blocked_count);
    bp_json_object_begin(json, "load");
    for (size_t i = 0; machine->has_load && i < sizeof averages / sizeof averages[0]; i++) {
        bp_json_add_number(json, averages[i], machine->load[i], 2);
    }
    bp_json_object_end(json);
    bp_model_add_known_uint(json, "cpus", machine->cpu_count > 0, machine->cpu_count);
    bp_model_add_known_uint(json, "memory_total_kb", machine->has_memory, machine->total_kb);
    bp_model_add_known_uint(json, "memory_available_kb", machine->has_memory,
                            machine->available_kb);
    bp_json_object_begin(json, "pressure_avg10_percent");
    for (size_t i = 0; i < BP_MACHINE_PRESSURES; i++) {
        add_known_number(json, bp_machine_pressures[i], machine->has_pressure[i],
                         machine->pressure_percent[i], 2);
    }
    bp_json_object_end(json);
    add_known_number(json, "window_ms", machine->window_ms > 0, machine->window_ms, 3);
    add_known_number(json, "collector_cpu_percent", machine->has_collector,
                     machine->collector_percent, 2);
    add_tasks(json, "busiest_processes", &machine->busiest, true);
    add_tasks(json, "largest_processes", &machine->largest, true);
    bp_json_add_uint(json, "unknown_rss_processes", machine->no_rss_count);
    add_tasks(json, "busiest_threads", &machine->threads, false);
    bp_json_object_end(json);
}

static void add_unsearched(bp_json *json, const bp_json_tree *manifest) {
    const bp_json_tree *line = bp_json_tree_first(bp_json_tree_array(manifest, "artefacts"));
    bp_json_array_begin(json, "not_searched");
    for (; line != NULL; line = bp_json_tree_next(line)) {
        if (bp_json_tree_is_true(line, "not_searched")) {
            bp_json_add_text(json, NULL, bp_json_tree_text_or(line, "name", ""));
        }
    }
    bp_json_array_end(json);
}

bugpack_status bp_summary_print(const bp_summary *summary, bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    add_report(&json, summary);
    if (summary->manifest != NULL) {
        bp_json_add_bool(&json, "complete", bp_json_tree_is_true(summary->manifest, "complete"));
        bp_json_add_bool(&json, "redacted", bp_json_tree_is_true(summary->manifest, "redacted"));
        add_unsearched(&json, summary->manifest);
    }
    add_findings(&json, summary, false);
    bp_model_add_known_uint(&json, "other_findings", bp_findings_other_count(summary->findings) > 0,
                            bp_findings_other_count(summary->findings));
    add_process(&json, summary);
    add_processes(&json, summary);
    add_machine(&json, &summary->machine);
    add_history(&json, summary);
    add_heap(&json, summary);
    add_triggers(&json, summary);
    add_log(&json, summary);
    add_traffic(&json, summary);
    return bp_json_finish(&json, error);
}

/* --- a line of an index ------------------------------------------------------------------- */

static void add_line_tags(bp_json *json, const bp_summary *summary) {
    const bp_json_tree *tags = bp_json_tree_object(summary->metadata, "tags");
    if (tags == NULL) {
        return;
    }
    bp_json_array_begin(json, "tags");
    for (const bp_json_tree *tag = bp_json_tree_first(tags); tag != NULL;
         tag = bp_json_tree_next(tag)) {
        bp_buffer text;
        bp_buffer_init(&text, (size_t)16 << 20);
        if (bp_buffer_printf(&text, "%s=%s", bp_json_tree_key(tag), bp_json_tree_value(tag)) !=
            BUGPACK_OK) {
            bp_json_fail_memory(json);
        }
        bp_json_add_text(json, NULL, bp_buffer_text(&text));
        bp_buffer_release(&text);
    }
    bp_json_array_end(json);
}

/* Three arrays of the same length: what an engine can unnest together. */
static void add_line_threads(bp_json *json, const bp_summary *summary) {
    if (summary->names.count == 0) {
        return;
    }
    bp_json_array_begin(json, "thread_names");
    for (size_t i = 0; i < summary->names.count; i++) {
        bp_json_add_text(json, NULL, summary->names.rows[i].name);
    }
    bp_json_array_end(json);
    bp_json_array_begin(json, "thread_counts");
    for (size_t i = 0; i < summary->names.count; i++) {
        bp_json_add_uint(json, NULL, summary->names.rows[i].count);
    }
    bp_json_array_end(json);
    bp_json_array_begin(json, "thread_cpu_percents");
    for (size_t i = 0; i < summary->names.count; i++) {
        bp_json_add_number(json, NULL, summary->names.rows[i].cpu_percent, 2);
    }
    bp_json_array_end(json);
}

static void add_line_numbers(bp_json *json, const bp_summary *summary) {
    add_use(json, &summary->use);
    add_uptime(json, &summary->use);
    if (summary->listed_count > 0) {
        bp_json_add_text(json, "busiest_thread", summary->threads[0].name);
        bp_json_add_number(json, "busiest_thread_cpu_percent", summary->threads[0].cpu_percent, 2);
    }
    bp_model_add_known_uint(json, "open_files", summary->has_open_files, summary->open_files);
    bp_model_add_known_uint(json, "heap_allocated_bytes", summary->has_heap[0],
                            summary->heap_bytes[0]);
}

/* The worst finding, and whether there is a deadlock: the question of every fleet. */
static void add_line_findings(bp_json *json, const bp_summary *summary) {
    uint64_t critical_count = summary->findings->other_counts[BP_SEVERITY_CRITICAL];
    for (size_t i = 0; i < summary->findings->count; i++) {
        critical_count += bp_finding_severity(&summary->findings->rows[i]) == BP_SEVERITY_CRITICAL;
    }
    if (summary->has_deadlock || summary->has_no_deadlock) {
        bp_json_add_bool(json, "deadlock", summary->has_deadlock);
    }
    if (summary->deadlocked_count > 0) {
        bp_json_array_begin(json, "deadlocked_threads");
        for (size_t i = 0; i < summary->deadlocked_count; i++) {
            bp_json_add_text(json, NULL, summary->deadlocked[i]);
        }
        bp_json_array_end(json);
    }
    bp_json_add_uint(json, "critical_findings", critical_count);
    bp_json_add_uint(json, "finding_count",
                     summary->findings->count + bp_findings_other_count(summary->findings));
    add_findings(json, summary, true);
    bp_json_array_begin(json, "finding_ids"); /* for engines that do not take arrays of objects */
    for (size_t i = 0; i < summary->findings->count; i++) {
        bp_json_add_text(json, NULL, bp_diagnoses[summary->findings->rows[i].diagnosis].id);
    }
    bp_json_array_end(json);
    if (summary->findings->count > 0) {
        bp_json_add_text(json, "finding", summary->findings->rows[0].text);
    }
}

static void add_line_gap_keys(bp_json *json, const bp_summary *summary) {
    uint64_t count = 0;
    if (summary->manifest == NULL) {
        return;
    }
    bp_json_array_begin(json, "gap_keys");
    for (const bp_json_tree *row =
             bp_json_tree_first(bp_json_tree_array(summary->manifest, "triggers"));
         row != NULL; row = bp_json_tree_next(row)) {
        const char *type = bp_json_tree_text(row, "report_type");
        const char *key = bp_json_tree_text(row, "key");
        if (type != NULL && key != NULL && strcmp(type, "pedantic") == 0) {
            bp_json_add_text(json, NULL, key);
            count++;
        }
    }
    bp_json_array_end(json);
    bp_json_add_uint(json, "gap_key_count", count);
}

static void add_line_report(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"report_id", "session_id",   "report_type", "gap_key",
                                       "channel",   "triggered_at", "started_at",  "session_end"};
    static const char *const platform_keys[] = {"os", "arch", "kernel"};
    char signal[BP_SIGNAL_BYTES];
    add_app(json, summary);
    add_texts(json, summary->metadata, keys, sizeof keys / sizeof keys[0]);
    bp_json_add_text(json, "signal", bp_exit_signal(summary->metadata, signal) ? signal : NULL);
    add_texts(json, bp_json_tree_object(summary->metadata, "platform"), platform_keys,
              sizeof platform_keys / sizeof platform_keys[0]);
    bp_json_add_text(json, "machine", bp_json_tree_text(summary->metadata, "machine"));
}

static bugpack_status print_line(const bp_summary *summary, uint64_t byte_count, bp_buffer *out,
                                 bugpack_error *error) {
    bp_json json;
    bp_json_begin_line(&json, out);
    bp_json_add_text(&json, "path", summary->path);
    bp_json_quote(&json, true);
    bp_json_add_uint(&json, "bytes", byte_count);
    add_line_report(&json, summary);
    if (summary->manifest != NULL) {
        bp_json_add_bool(&json, "complete", bp_json_tree_is_true(summary->manifest, "complete"));
    }
    add_line_findings(&json, summary);
    add_line_numbers(&json, summary);
    add_line_threads(&json, summary);
    add_line_gap_keys(&json, summary);
    add_line_tags(&json, summary);
    return bp_json_finish(&json, error);
}

bugpack_status bp_index_line(const char *path, uint64_t byte_count, bp_buffer *out,
                             bugpack_error *error) {
    static const uint64_t max_bytes = (uint64_t)256 << 20;
    bp_summary *summary = NULL;
    bugpack_status status = bp_summary_open(path, max_bytes, true,
                                            (bp_frame_finder){NULL, NULL, NULL}, &summary, error);
    if (status == BUGPACK_OK) {
        status = print_line(summary, byte_count, out, error);
    }
    bp_summary_close(summary);
    return status;
}
