#include "model/fields.h"
#include "model/metrics.h"
#include "json/json.h"

static void add_process(bp_json *json, const bp_metrics *metrics) {
    bp_json_object_begin(json, "process");
    bp_json_add_number(json, "cpu_percent", metrics->cpu_percent, 2);
    if (metrics->has_memory) {
        bp_json_add_uint(json, "rss_kb", metrics->rss_kb);
        bp_json_add_uint(json, "vm_size_kb", metrics->vm_size_kb);
    }
    if (metrics->has_uptime) {
        bp_json_add_number(json, "uptime_secs", metrics->uptime_secs, 3);
    }
    bp_json_object_end(json);
}

static void add_thread(bp_json *json, const bp_thread_metrics *thread) {
    bp_json_object_begin(json, NULL);
    bp_json_add_uint(json, "tid", thread->tid);
    bp_model_add_name(json, "name", thread->name, sizeof thread->name);
    bp_json_add_number(json, "cpu_percent", thread->cpu_percent, 2);
    bp_json_object_end(json);
}

bugpack_status bp_metrics_print(const bp_metrics *metrics, const char *platform, bp_buffer *out,
                                bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_uint(&json, "sample_window_ms", metrics->sample_window_ms);
    add_process(&json, metrics);
    bp_json_array_begin(&json, "threads");
    for (size_t i = 0; i < metrics->thread_count; i++) {
        add_thread(&json, &metrics->threads[i]);
    }
    bp_json_array_end(&json);
    bp_json_add_text(&json, "platform", platform);
    return bp_json_finish(&json, error);
}

bugpack_status bp_metrics_print_unavailable(const char *platform, const char *reason,
                                            bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_text(&json, "platform", platform);
    bp_json_add_bool(&json, "available", false);
    bp_json_add_text(&json, "reason", reason);
    return bp_json_finish(&json, error);
}
