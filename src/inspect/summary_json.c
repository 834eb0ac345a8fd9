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

static void add_report(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"report_id",  "session_id", "report_type", "session_end",
                                       "gap_key",    "channel",    "description", "triggered_at",
                                       "started_at", "machine"};
    const bp_json_tree *app = bp_json_tree_object(summary->metadata, "app");
    uint64_t pid;
    bp_json_object_begin(json, "report");
    bp_json_add_text(json, "path", summary->path);
    bp_json_quote(json, true);
    bp_json_add_text(json, "app", bp_json_tree_text(app, "name"));
    bp_json_add_text(json, "version", bp_json_tree_text(app, "version"));
    bp_json_add_text(json, "build_id", bp_json_tree_text(app, "build_id"));
    add_texts(json, summary->metadata, keys, sizeof keys / sizeof keys[0]);
    if (bp_json_tree_uint(summary->metadata, "pid", &pid)) {
        bp_json_add_uint(json, "pid", pid);
    }
    bp_model_add_known_text(json, "process", summary->process_name);
    bp_json_object_end(json);
}

static void add_findings(bp_json *json, const bp_summary *summary) {
    bp_json_array_begin(json, "findings");
    for (size_t i = 0; i < summary->finding_count; i++) {
        const bp_finding *finding = &summary->findings[i];
        const bp_diagnosis_row *diagnosis = &bp_diagnoses[finding->diagnosis];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "id", diagnosis->id);
        bp_json_add_text(json, "severity", bp_severity_name(diagnosis->severity));
        bp_json_add_text(json, "entry", finding->entry);
        bp_model_add_known_text(json, "path", diagnosis->path);
        bp_json_add_text(json, "text", finding->text);
        bp_model_add_known_text(json, "next", diagnosis->next);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
    bp_model_add_known_uint(json, "other_findings", bp_summary_other_findings(summary) > 0,
                            bp_summary_other_findings(summary));
}

static void add_process(bp_json *json, const bp_summary *summary) {
    bp_json_object_begin(json, "process");
    if (summary->has_metrics) {
        bp_json_add_number(json, "sample_window_ms", summary->window_ms, 3);
        bp_json_add_number(json, "cpu_percent", summary->cpu_percent, 2);
        bp_json_add_uint(json, "thread_count", summary->thread_count);
    }
    if (summary->has_rss) {
        bp_json_add_uint(json, "rss_kb", summary->rss_kb);
    }
    if (summary->has_uptime) {
        bp_json_add_number(json, "uptime_secs", summary->uptime_secs, 3);
    }
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
        if (thread->cpu_ms >= 0) {
            bp_json_add_number(json, "cpu_ms", thread->cpu_ms, 3);
        }
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
        if (process->pid > 0) {
            bp_json_add_uint(json, "pid", process->pid);
        }
        if (process->has_metrics) {
            bp_json_add_number(json, "cpu_percent", process->cpu_percent, 2);
            bp_json_add_uint(json, "thread_count", process->thread_count);
        }
        if (process->has_rss) {
            bp_json_add_uint(json, "rss_kb", process->rss_kb);
        }
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_history(bp_json *json, const bp_summary *summary) {
    bp_json_array_begin(json, "history");
    for (size_t i = 0; i < summary->sample_count; i++) {
        const bp_summary_sample *sample = &summary->samples[i];
        bp_json_object_begin(json, NULL);
        bp_model_add_time(json, "time", sample->wall_ns);
        bp_json_add_number(json, "cpu_percent", sample->cpu_percent_100 / 100.0, 2);
        if (sample->has_rss) {
            bp_json_add_uint(json, "rss_kb", sample->rss_kb);
        }
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_heap(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"allocated_bytes", "resident_bytes"};
    bp_json_object_begin(json, "heap");
    bp_model_add_known_text(json, "allocator", summary->allocator);
    for (size_t i = 0; i < 2; i++) {
        if (summary->has_heap[i]) {
            bp_json_add_uint(json, keys[i], summary->heap_bytes[i]);
        }
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
        if (task->has_percent) {
            bp_json_add_number(json, "cpu_percent", task->cpu_percent, 2);
        }
        bp_model_add_flag(json, "born_in_window", task->is_born);
        if (task->children_cpu_ms > 0) {
            bp_json_add_number(json, "children_cpu_ms", task->children_cpu_ms, 3);
        }
        if (task->has_cpu) {
            bp_json_add_uint(json, "cpu_ns", task->cpu_ns);
        }
        if (!is_process) {
            bp_json_add_text(json, "state", bp_machine_state_name(task));
        } else {
            bp_json_add_uint(json, "thread_count", task->thread_count);
            bp_json_add_uint(json, "running_threads", task->running_count);
        }
        if (task->has_rss) {
            bp_json_add_uint(json, "rss_kb", task->rss_kb);
        }
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
    if (machine->cpu_count > 0) {
        bp_json_add_uint(json, "cpus", machine->cpu_count);
    }
    if (machine->has_memory) {
        bp_json_add_uint(json, "memory_total_kb", machine->total_kb);
        bp_json_add_uint(json, "memory_available_kb", machine->available_kb);
    }
    bp_json_object_begin(json, "pressure_avg10_percent");
    for (size_t i = 0; i < BP_MACHINE_PRESSURES; i++) {
        if (machine->has_pressure[i]) {
            bp_json_add_number(json, bp_machine_pressures[i], machine->pressure_percent[i], 2);
        }
    }
    bp_json_object_end(json);
    if (machine->window_ms > 0) {
        bp_json_add_number(json, "window_ms", machine->window_ms, 3);
    }
    if (machine->has_collector) {
        bp_json_add_number(json, "collector_cpu_percent", machine->collector_percent, 2);
    }
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
    add_findings(&json, summary);
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
