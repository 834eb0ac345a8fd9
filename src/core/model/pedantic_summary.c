#include "model/pedantic_summary.h"

#include <bugpack/version.h>

#include "json/json.h"
#include "model/fields.h"
#include "model/metadata.h"

static void add_gap(bp_json *json, const bp_pedantic_gap *gap) {
    bp_json_object_begin(json, NULL);
    bp_json_add_text(json, "key", gap->key);
    bp_json_add_bytes(json, "channel", gap->channel_bytes > 0 ? gap->channel : NULL,
                      gap->channel_bytes);
    bp_json_add_uint(json, "count", gap->count);
    bp_model_add_time(json, "first", gap->first_wall_ns);
    bp_model_add_time(json, "last", gap->last_wall_ns);
    bp_json_add_bool(json, "written", gap->is_written);
    bp_model_add_known_text(json, "reason", gap->reason);
    bp_json_object_end(json);
}

bugpack_status bp_pedantic_summary_print(const bp_pedantic_summary *summary, bp_buffer *out,
                                         bugpack_error *error) {
    uint64_t written = 0, occurrences = 0;
    for (size_t i = 0; i < summary->gap_count; i++) {
        written += summary->gaps[i].is_written;
        occurrences += summary->gaps[i].count;
    }
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    bp_model_add_known_text(&json, "session_id", summary->session_id);
    bp_model_add_app(&json, summary->app_name, summary->app_version, summary->app_build_id);
    bp_json_add_text(&json, "bugpack_version", BUGPACK_VERSION);
    bp_json_add_int(&json, "pid", summary->pid);
    bp_model_add_time(&json, "opened_at", summary->opened_wall_ns);
    bp_model_add_time(&json, "closed_at", summary->closed_wall_ns);
    bp_json_add_uint(&json, "cap", summary->cap);
    bp_json_add_uint(&json, "channel_cap", summary->channel_cap);
    bp_json_add_uint(&json, "written", written);
    bp_json_add_uint(&json, "suppressed", summary->gap_count - written);
    bp_json_add_uint(&json, "sights", occurrences);
    bp_json_array_begin(&json, "gaps");
    for (size_t i = 0; i < summary->gap_count; i++) {
        add_gap(&json, &summary->gaps[i]);
    }
    bp_json_array_end(&json);
    return bp_json_finish(&json, error);
}
