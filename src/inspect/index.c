#include "inspect/index.h"

#include <stdbool.h>
#include <string.h>

#include "base/status.h"
#include "inspect/summary.h"
#include "json/json.h"

static void add_tags(bp_json *json, const bp_summary *summary) {
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
static void add_threads(bp_json *json, const bp_summary *summary) {
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

static void add_numbers(bp_json *json, const bp_summary *summary) {
    if (summary->has_metrics) {
        bp_json_add_number(json, "cpu_percent", summary->cpu_percent, 2);
        bp_json_add_uint(json, "thread_count", summary->thread_count);
    }
    if (summary->has_rss) {
        bp_json_add_uint(json, "rss_kb", summary->rss_kb);
    }
    if (summary->has_uptime) {
        bp_json_add_number(json, "uptime_secs", summary->uptime_secs, 3);
    }
    if (summary->listed_count > 0) {
        bp_json_add_text(json, "busiest_thread", summary->threads[0].name);
        bp_json_add_number(json, "busiest_thread_cpu_percent", summary->threads[0].cpu_percent, 2);
    }
    if (summary->has_open_files) {
        bp_json_add_uint(json, "open_files", summary->open_files);
    }
    if (summary->has_heap[0]) {
        bp_json_add_uint(json, "heap_allocated_bytes", summary->heap_bytes[0]);
    }
}

/* The worst finding, and whether there is a deadlock: the question of every fleet. */
static void add_findings(bp_json *json, const bp_summary *summary) {
    uint64_t critical_count = summary->other_finding_counts[BP_SEVERITY_CRITICAL];
    for (size_t i = 0; i < summary->finding_count; i++) {
        critical_count += bp_finding_severity(&summary->findings[i]) == BP_SEVERITY_CRITICAL;
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
    bp_json_add_uint(json, "findings", summary->finding_count + bp_summary_other_findings(summary));
    if (summary->finding_count > 0) {
        bp_json_add_text(json, "finding", summary->findings[0].text);
    }
}

static void add_gap_keys(bp_json *json, const bp_summary *summary) {
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

static void add_report(bp_json *json, const bp_summary *summary) {
    static const char *const keys[] = {"report_id", "session_id",   "report_type", "gap_key",
                                       "channel",   "triggered_at", "started_at",  "session_end"};
    const bp_json_tree *app = bp_json_tree_object(summary->metadata, "app");
    const bp_json_tree *platform = bp_json_tree_object(summary->metadata, "platform");
    char signal[BP_SUMMARY_SIGNAL_BYTES];
    bp_json_add_text(json, "app", bp_json_tree_text(app, "name"));
    bp_json_add_text(json, "version", bp_json_tree_text(app, "version"));
    bp_json_add_text(json, "build_id", bp_json_tree_text(app, "build_id"));
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        bp_json_add_text(json, keys[i], bp_json_tree_text(summary->metadata, keys[i]));
    }
    bp_json_add_text(json, "signal", bp_summary_signal(summary, signal) ? signal : NULL);
    bp_json_add_text(json, "os", bp_json_tree_text(platform, "os"));
    bp_json_add_text(json, "arch", bp_json_tree_text(platform, "arch"));
    bp_json_add_text(json, "kernel", bp_json_tree_text(platform, "kernel"));
    bp_json_add_text(json, "machine", bp_json_tree_text(summary->metadata, "machine"));
}

static bugpack_status print(const bp_summary *summary, uint64_t byte_count, bp_buffer *out,
                            bugpack_error *error) {
    bp_json json;
    bp_json_begin_line(&json, out);
    bp_json_add_text(&json, "path", summary->path);
    bp_json_quote(&json, true);
    bp_json_add_uint(&json, "bytes", byte_count);
    add_report(&json, summary);
    if (summary->manifest != NULL) {
        bp_json_add_bool(&json, "complete", bp_json_tree_is_true(summary->manifest, "complete"));
    }
    add_findings(&json, summary);
    add_numbers(&json, summary);
    add_threads(&json, summary);
    add_gap_keys(&json, summary);
    add_tags(&json, summary);
    return bp_json_finish(&json, error);
}

bugpack_status bp_index_line(const char *path, uint64_t byte_count, bp_buffer *out,
                             bugpack_error *error) {
    static const uint64_t max_bytes = (uint64_t)256 << 20;
    bp_summary *summary = NULL;
    bugpack_status status = bp_summary_open(path, max_bytes, true,
                                            (bp_frame_finder){NULL, NULL, NULL}, &summary, error);
    if (status == BUGPACK_OK) {
        status = print(summary, byte_count, out, error);
    }
    bp_summary_close(summary);
    return status;
}
