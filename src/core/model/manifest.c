#include "model/manifest.h"

#include <string.h>

#include "json/json.h"
#include "model/fields.h"

static const char *status_name(bp_artefact_status status) {
    static const char *const names[] = {[BP_ARTEFACT_OK] = "ok",
                                        [BP_ARTEFACT_TRUNCATED] = "truncated",
                                        [BP_ARTEFACT_OMITTED] = "omitted",
                                        [BP_ARTEFACT_FAILED] = "failed",
                                        [BP_ARTEFACT_TIMED_OUT] = "timed_out",
                                        [BP_ARTEFACT_DISABLED] = "disabled"};
    return (unsigned)status < sizeof names / sizeof names[0] ? names[status] : "unknown";
}

static void add_entry(bp_json *json, const bp_manifest_line *entry) {
    bp_json_object_begin(json, NULL);
    bp_json_add_text(json, "name", entry->name);
    bp_json_add_text(json, "status", status_name(entry->status));
    bp_model_add_flag(json, "missing", entry->is_missing);
    bp_json_add_uint(json, "bytes", entry->bytes);
    bp_model_add_known_text(json, "sha256", entry->sha256);
    bp_model_add_known_uint(json, "original_bytes", entry->has_original_bytes,
                            entry->original_bytes);
    bp_model_add_known_uint(json, "left_out_bytes", entry->left_out_bytes > 0,
                            entry->left_out_bytes);
    bp_model_add_time(json, "captured_at", entry->captured_wall_ns);
    bp_model_add_ms(json, "duration_ms", entry->duration_ns);
    if (entry->covers_from_wall_ns != 0 || entry->covers_to_wall_ns != 0) {
        bp_json_object_begin(json, "covers");
        bp_model_add_time(json, "from", entry->covers_from_wall_ns);
        bp_model_add_time(json, "to", entry->covers_to_wall_ns);
        bp_json_object_end(json);
    }
    bp_model_add_flag(json, "disk_full", entry->is_disk_full);
    bp_model_add_flag(json, "not_searched", entry->is_unsearched);
    if (entry->exact_channels != NULL) {
        bp_json_array_begin(json, "exact_channels");
        for (const char *name = entry->exact_channels; *name != '\0'; name += strlen(name) + 1) {
            bp_json_add_text(json, NULL, name);
        }
        bp_json_array_end(json);
    }
    if (entry->redaction_count > 0) {
        bp_json_array_begin(json, "redactions");
        for (size_t i = 0; i < entry->redaction_count; i++) {
            bp_json_object_begin(json, NULL);
            bp_json_add_text(json, "rule", entry->redactions[i].rule);
            bp_json_add_uint(json, "count", entry->redactions[i].count);
            bp_json_object_end(json);
        }
        bp_json_array_end(json);
    }
    bp_model_add_known_text(json, "note", entry->note);
    bp_model_add_known_text(json, "reason", entry->reason);
    bp_json_object_end(json);
}

static void add_trigger(bp_json *json, const bp_trigger_entry *trigger) {
    bp_json_object_begin(json, NULL);
    bp_json_add_text(json, "report_type", bp_report_kind_name(trigger->kind));
    bp_model_add_known_text(json, "key", trigger->key);
    bp_json_add_uint(json, "count", trigger->count);
    bp_model_add_time(json, "first", trigger->first_wall_ns);
    bp_model_add_time(json, "last", trigger->last_wall_ns);
    bp_json_add_bool(json, "written", trigger->written_count > 0);
    bp_json_add_uint(json, "reports", trigger->written_count);
    bp_model_add_known_text(json, "reason", trigger->reason);
    bool has_ended = trigger->longest_duration_ns > 0;
    bp_model_add_known_ms(json, "last_duration_ms", has_ended, trigger->last_duration_ns);
    bp_model_add_known_ms(json, "longest_duration_ms", has_ended, trigger->longest_duration_ns);
    bp_json_object_end(json);
}

bugpack_status bp_manifest_print(const bp_manifest *manifest, bp_buffer *out,
                                 bugpack_error *error) {
    uint64_t missing_count = 0;
    for (size_t i = 0; i < manifest->entry_count; i++) {
        missing_count += manifest->entries[i].is_missing;
    }
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    bp_json_add_text(&json, "report_id", manifest->report_id);
    bp_json_add_bool(&json, "complete", missing_count == 0);
    bp_json_add_uint(&json, "missing", missing_count);
    bp_json_add_bool(&json, "redacted", manifest->is_redacted);
    bp_model_add_known_uint(&json, "max_zip_bytes", manifest->max_zip_bytes > 0,
                            manifest->max_zip_bytes);
    bp_json_array_begin(&json, "artefacts");
    for (size_t i = 0; i < manifest->entry_count; i++) {
        add_entry(&json, &manifest->entries[i]);
    }
    bp_json_array_end(&json);
    if (manifest->profile.is_known) {
        bp_profile_add(&manifest->profile, &json);
    }
    if (manifest->trigger_count > 0) {
        bp_json_array_begin(&json, "triggers");
        for (size_t i = 0; i < manifest->trigger_count; i++) {
            add_trigger(&json, &manifest->triggers[i]);
        }
        bp_json_array_end(&json);
    }
    return bp_json_finish(&json, error);
}
