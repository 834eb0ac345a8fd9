/* The facts as JSON: whole, and as a line of an index, which is flat, so that any table takes it.
 */

#include <string.h>

#include "facts/facts.h"
#include "json/json.h"
#include "model/fields.h"

static void add_history(bp_json *json, const bp_facts *facts) {
    bp_json_array_begin(json, "history");
    for (size_t i = 0; i < facts->first.sample_count; i++) {
        const bp_sample *sample = &facts->first.samples[i];
        bp_json_object_begin(json, NULL);
        bp_model_add_time(json, "time", sample->wall_ns);
        bp_json_add_number(json, "cpu_percent", bp_sample_cpu(sample), 2);
        bp_model_add_known_uint(json, "rss_kb", sample->has_rss, sample->rss_kb);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

/* With `has_next`, what each diagnosis says of all reports. */
static void add_findings(bp_json *json, const bp_findings *findings, bool has_next) {
    bp_json_array_begin(json, "findings");
    for (size_t i = 0; i < findings->count; i++) {
        const bp_finding *finding = &findings->rows[i];
        const bp_diagnosis_row *diagnosis = &bp_diagnoses[finding->diagnosis];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "id", diagnosis->id);
        bp_json_add_text(json, "severity", bp_severity_name(bp_finding_severity(finding)));
        bp_json_add_text(json, "entry", finding->entry);
        bp_model_add_known_text(json, "path", bp_finding_path(finding));
        bp_json_add_text(json, "text", finding->sentence.text);
        bp_model_add_known_text(json, "next", has_next ? bp_finding_next(finding) : "");
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

bugpack_status bp_facts_print(const bp_facts *facts, bp_buffer *out, bugpack_error *error) {
    static const char *const members[] = {
        "schema",          "report",   "complete",          "redacted",
        "not_searched",    "findings", "process",           "group",
        "busiest_threads", "profile",  "further_processes", "machine",
        "history",         "heap",     "triggers",          "log",
        "traffic"};
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_quote(&json, true);
    for (size_t i = 0; i < sizeof members / sizeof members[0]; i++) {
        if (strcmp(members[i], "history") == 0) {
            add_history(&json, facts);
        } else if (strcmp(members[i], "findings") == 0) {
            bp_signature_add(&json, &facts->signature);
            add_findings(&json, &facts->findings, true);
            uint64_t other_count = bp_findings_other_count(&facts->findings);
            bp_model_add_known_uint(&json, "other_findings", other_count > 0, other_count);
        } else {
            bp_json_add_tree(&json, members[i], bp_json_tree_member(facts->document, members[i]));
        }
    }
    return bp_json_finish(&json, error);
}

/* --- a line of an index ------------------------------------------------------------------- */

/* Members of a line, by their paths in the document. */
typedef struct line_member {
    const char *key, *path;
} line_member;

static void add_members(bp_json *json, const bp_facts *facts, const line_member *members) {
    for (; members->key != NULL; members++) {
        bp_json_add_tree(json, members->key, bp_json_tree_at(facts->document, members->path));
    }
}

/* Three arrays of the same length: what an engine can unnest together. */
static void add_threads(bp_json *json, const bp_thread_names *names) {
    static const size_t named_max = 1000;
    size_t count = names->count < named_max ? names->count : named_max;
    if (count == 0) {
        return;
    }
    bp_json_array_begin(json, "thread_names");
    for (size_t i = 0; i < count; i++) {
        bp_json_add_text(json, NULL, names->rows[i].name);
    }
    bp_json_array_end(json);
    bp_json_array_begin(json, "thread_counts");
    for (size_t i = 0; i < count; i++) {
        bp_json_add_uint(json, NULL, names->rows[i].count);
    }
    bp_json_array_end(json);
    bp_json_array_begin(json, "thread_cpu_percents");
    for (size_t i = 0; i < count; i++) {
        bp_json_add_number(json, NULL, names->rows[i].cpu_percent, 2);
    }
    bp_json_array_end(json);
    if (count < names->count) {
        bp_json_add_uint(json, "thread_names_left_out", names->count - count);
    }
}

/* The processes of which all is known, first that of the report: four arrays of the same length. */
static void add_processes(bp_json *json, const bp_facts *facts) {
    static const char *const columns[][2] = {{"process_keys", "process_key"},
                                             {"process_names", "name"},
                                             {"process_rss_kb", "rss_kb"},
                                             {"process_cpu_percents", "cpu_percent"}};
    enum { column_count = sizeof columns / sizeof columns[0] };
    uint64_t left_out = 0;
    for (size_t i = 0; i < column_count; i++) {
        left_out = 0;
        bp_json_array_begin(json, columns[i][0]);
        BP_JSON_EACH (process, bp_json_tree_rows(facts->document, "all_processes")) {
            size_t known_count = 0;
            for (size_t j = 0; j < column_count; j++) {
                known_count += bp_json_tree_member(process, columns[j][1]) != NULL;
            }
            left_out += known_count < column_count;
            if (known_count == column_count) {
                bp_json_add_tree(json, NULL, bp_json_tree_member(process, columns[i][1]));
            }
        }
        bp_json_array_end(json);
    }
    left_out += facts->unread_process_count;
    bp_model_add_known_uint(json, "processes_left_out", left_out > 0, left_out);
}

static void add_gap_keys(bp_json *json, const bp_facts *facts) {
    uint64_t count = 0;
    if (facts->manifest == NULL) {
        return;
    }
    bp_json_array_begin(json, "gap_keys");
    BP_JSON_EACH (row, bp_json_tree_rows(facts->document, "triggers")) {
        const char *key = bp_json_tree_text(row, "key");
        if (key != NULL && strcmp(bp_json_tree_text_or(row, "report_type", ""), "pedantic") == 0) {
            bp_json_add_text(json, NULL, key);
            count++;
        }
    }
    bp_json_array_end(json);
    bp_json_add_uint(json, "gap_key_count", count);
}

static void add_tags(bp_json *json, const bp_json_tree *tags) {
    if (tags == NULL) {
        return;
    }
    bp_json_array_begin(json, "tags");
    BP_JSON_EACH (tag, bp_json_tree_first(tags)) {
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

static bugpack_status print_line(const bp_facts *facts, uint64_t byte_count, bp_buffer *out,
                                 bugpack_error *error) {
    static const line_member which[] = {{"app", "report.app"},
                                        {"version", "report.version"},
                                        {"build_id", "report.build_id"},
                                        {"report_id", "report.report_id"},
                                        {"session_id", "report.session_id"},
                                        {"report_type", "report.report_type"},
                                        {"gap_key", "report.gap_key"},
                                        {"channel", "report.channel"},
                                        {"triggered_at", "report.triggered_at"},
                                        {"started_at", "report.started_at"},
                                        {"session_end", "report.session_end"},
                                        {"signal", "signal"},
                                        {"os", "os"},
                                        {"arch", "arch"},
                                        {"kernel", "kernel"},
                                        {"machine", "report.machine"},
                                        {"pid", "first_process.pid"},
                                        {"process_key", "first_process.process_key"},
                                        {"complete", "complete"},
                                        {"signature", "signature"},
                                        {"weak_signature", "weak_signature"},
                                        {"deadlock", "deadlock"},
                                        {"deadlocked_threads", "deadlocked_threads"},
                                        {NULL, NULL}};
    static const line_member figures[] = {
        {"cpu_percent", "process.cpu_percent"},
        {"thread_count", "process.thread_count"},
        {"rss_kb", "process.rss_kb"},
        {"uptime_secs", "process.uptime_secs"},
        {"busiest_thread", "busiest_threads.name"},
        {"busiest_thread_cpu_percent", "busiest_threads.cpu_percent"},
        {"open_files", "process.open_files"},
        {"heap_allocated_bytes", "heap.allocated_bytes"},
        {NULL, NULL}};
    bp_json json;
    bp_json_begin_as(&json, BP_JSON_LINE, out);
    bp_json_quote(&json, true);
    bp_json_add_tree(&json, "path", bp_json_tree_at(facts->document, "report.path"));
    bp_json_add_uint(&json, "bytes", byte_count);
    add_members(&json, facts, which);
    bp_json_add_uint(&json, "critical_findings",
                     bp_findings_severity_count(&facts->findings, BP_SEVERITY_CRITICAL));
    bp_json_add_uint(&json, "finding_count",
                     facts->findings.count + bp_findings_other_count(&facts->findings));
    add_findings(&json, &facts->findings, false);
    bp_json_array_begin(&json, "finding_ids"); /* for engines that take no arrays of objects */
    for (size_t i = 0; i < facts->findings.count; i++) {
        bp_json_add_text(&json, NULL, bp_diagnoses[facts->findings.rows[i].diagnosis].id);
    }
    bp_json_array_end(&json);
    bp_json_add_text(&json, "finding",
                     facts->findings.count > 0 ? facts->findings.rows[0].sentence.text : NULL);
    add_members(&json, facts, figures);
    add_threads(&json, &facts->first.names);
    add_processes(&json, facts);
    add_gap_keys(&json, facts);
    add_tags(&json, bp_json_tree_object(facts->metadata, "tags"));
    return bp_json_finish(&json, error);
}

bugpack_status bp_index_line(const char *path, uint64_t byte_count, bp_buffer *out,
                             bugpack_error *error) {
    static const uint64_t max_bytes = (uint64_t)256 << 20;
    bp_facts *facts = NULL;
    bugpack_status status =
        bp_facts_open(path, max_bytes, true, (bp_frame_finder){NULL, NULL, NULL}, &facts, error);
    if (status == BUGPACK_OK) {
        status = print_line(facts, byte_count, out, error);
    }
    bp_facts_close(facts);
    return status;
}
