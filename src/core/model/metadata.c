#include "model/metadata.h"

#include <bugpack/version.h>

#include "json/json.h"
#include "model/condition.h"
#include "model/fields.h"

const char *bp_report_kind_name(bp_report_kind kind) {
    static const char *const names[] = {[BP_REPORT_BUGREPORT] = "bugreport",
                                        [BP_REPORT_PEDANTIC] = "pedantic",
                                        [BP_REPORT_DISCONNECT] = "disconnect",
                                        [BP_REPORT_NOTIFICATION] = "notification",
                                        [BP_REPORT_AUTO_SNAPSHOT] = "auto-snapshot",
                                        [BP_REPORT_HANG] = "hang",
                                        [BP_REPORT_CONDITION] = "condition",
                                        [BP_REPORT_CRASH] = "crash",
                                        [BP_REPORT_EXIT] = "exit"};
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : "unknown";
}

static uint64_t subtract(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

/* The uptime at `written`, and at the trigger. Only monotonic times are subtracted: the wall clock
 * may be set while a session is open. */
static void add_uptimes(bp_json *json, const bp_metadata *metadata, uint64_t uptime_ns) {
    uint64_t waited_ns = subtract(metadata->written.monotonic_ns, metadata->triggered.monotonic_ns);
    const double per_sec = (double)BP_NS_PER_SEC;
    bp_json_add_number(json, "session_uptime_secs", (double)uptime_ns / per_sec, 3);
    bp_json_add_number(json, "triggered_uptime_secs",
                       (double)subtract(uptime_ns, waited_ns) / per_sec, 3);
}

static void add_session_uptimes(bp_json *json, const bp_metadata *metadata) {
    uint64_t opened_ns = metadata->session_opened.monotonic_ns;
    if (opened_ns != 0) {
        add_uptimes(json, metadata, subtract(metadata->written.monotonic_ns, opened_ns));
    }
}

static void add_origin(bp_json *json, const bp_metadata *metadata) {
    bp_model_add_app(json, metadata->app_name, metadata->app_version, metadata->app_build_id);
    bp_json_add_text(json, "bugpack_version", BUGPACK_VERSION);
    bp_json_object_begin(json, "platform");
    bp_model_add_known_text(json, "os", metadata->platform);
    bp_model_add_known_text(json, "arch", metadata->arch);
    bp_model_add_known_text(json, "kernel", metadata->kernel);
    bp_json_object_end(json);
    bp_model_add_known_text(json, "machine", metadata->machine);
    bp_json_add_int(json, "pid", metadata->target.pid != 0 ? metadata->target.pid : metadata->pid);
    if (metadata->target.name[0] != '\0') {
        bp_model_add_name(json, "process_name", metadata->target.name,
                          sizeof metadata->target.name);
    }
    bp_model_add_time(json, "started_at", metadata->started_wall_ns);
}

static void add_region(bp_json *json, const bugpack_region *region) {
    if (region != NULL) {
        bp_json_object_begin(json, "region");
        bp_json_add_uint(json, "x", region->x);
        bp_json_add_uint(json, "y", region->y);
        bp_json_add_uint(json, "width", region->width);
        bp_json_add_uint(json, "height", region->height);
        bp_json_object_end(json);
    }
}

static void add_exit(bp_json *json, const bp_exit *exit, bool is_core_known) {
    if (exit == NULL) {
        return;
    }
    bp_json_object_begin(json, "exit");
    if (exit->signal == 0) {
        bp_json_add_int(json, "status", exit->status);
        bp_model_add_known_text(json, "not_executed", exit->not_executed);
    } else {
        bp_json_add_int(json, "signal", exit->signal);
        bp_model_add_known_text(json, "name", bp_model_signal_name(exit->signal));
        if (is_core_known) {
            bp_json_add_bool(json, "core_dumped", exit->has_core);
        }
    }
    bp_model_add_known_ms(json, "cpu_ms", exit->cpu_ns != 0, exit->cpu_ns);
    bp_json_object_end(json);
}

static void add_others(bp_json *json, const bp_metadata_target *others, size_t count) {
    if (count > 0) {
        bp_json_array_begin(json, "processes");
        for (size_t i = 0; i < count; i++) {
            bp_json_object_begin(json, NULL);
            bp_json_add_int(json, "pid", others[i].pid);
            bp_model_add_name(json, "name", others[i].name, sizeof others[i].name);
            bp_json_object_end(json);
        }
        bp_json_array_end(json);
    }
}

/* The writer of a report that is about another process or none. */
static void add_collector(bp_json *json, const bp_metadata *metadata) {
    if (metadata->target.pid != 0 || metadata->is_about_none) {
        bp_json_object_begin(json, "collector");
        bp_json_add_int(json, "pid", metadata->pid);
        add_session_uptimes(json, metadata);
        bp_json_object_end(json);
    }
}

/* The signature of a gap or a condition needs nothing else of the report. */
static void add_signature(bp_json *json, const bp_metadata *metadata) {
    bp_signature signature = {.text = ""};
    if (metadata->signature != NULL) {
        signature = *metadata->signature;
    } else if (metadata->condition != NULL) {
        bp_signature_make(&signature, "condition", metadata->condition->text, false, NULL, 0);
    } else if (metadata->gap_key != NULL) {
        bp_signature_make(&signature, "gap", metadata->gap_key, true, NULL, 0);
    }
    bp_signature_add(json, &signature);
}

bugpack_status bp_metadata_print(const bp_metadata *metadata, bp_buffer *out,
                                 bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    bp_json_add_text(&json, "report_id", metadata->report_id);
    bp_model_add_known_text(&json, "session_id", metadata->session_id);
    bp_model_add_known_uint(&json, "sequence", metadata->sequence != 0, metadata->sequence);
    add_origin(&json, metadata);
    bp_json_add_text(&json, "report_type", bp_report_kind_name(metadata->kind));
    bp_model_add_known_text(&json, "session_end", metadata->session_end);
    bp_model_add_known_text(&json, "gap_key", metadata->gap_key);
    bp_model_add_known_text(&json, "channel", metadata->channel);
    bp_model_add_known_text(&json, "description", metadata->description);
    add_signature(&json, metadata);
    bp_model_add_known_uint(&json, "suppressed_before", metadata->suppressed_count > 0,
                            metadata->suppressed_count);
    bp_condition_add(&json, metadata->condition);
    add_region(&json, metadata->region);
    add_exit(&json, metadata->exit, !metadata->is_core_unknown);
    bp_model_add_time(&json, "timestamp", metadata->written.wall_ns);
    bp_model_add_time(&json, "triggered_at", metadata->triggered.wall_ns);
    if (metadata->target.pid == 0) {
        add_session_uptimes(&json, metadata);
    } else if (metadata->target_uptime_ns != 0) {
        add_uptimes(&json, metadata, metadata->target_uptime_ns);
    }
    if (metadata->target.pid != 0) {
        bp_json_object_begin(&json, "target");
        bp_json_add_int(&json, "pid", metadata->target.pid);
        bp_model_add_name(&json, "name", metadata->target.name, sizeof metadata->target.name);
        bp_model_add_known_text(&json, "session_id", metadata->target.session_id);
        bp_json_object_end(&json);
    }
    add_others(&json, metadata->others, metadata->other_count);
    add_collector(&json, metadata);
    if (metadata->tag_count > 0) {
        bp_json_object_begin(&json, "tags");
        for (size_t i = 0; i < metadata->tag_count; i++) {
            bp_json_add_text(&json, metadata->tags[i].key, metadata->tags[i].value);
        }
        bp_json_object_end(&json);
    }
    return bp_json_finish(&json, error);
}
