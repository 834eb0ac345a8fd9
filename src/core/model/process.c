#include "model/process.h"

#include <string.h>

#include "json/json.h"
#include "model/fields.h"

typedef struct group_member {
    const char *key;
    bp_known_uint number;
} group_member;

/* A group of which nothing is known is left out. */
static void add_group(bp_json *json, const char *key, const group_member *members) {
    bool any_known = false;
    for (const group_member *member = members; member->key != NULL; member++) {
        any_known = any_known || member->number.known;
    }
    if (!any_known) {
        return;
    }
    bp_json_object_begin(json, key);
    for (const group_member *member = members; member->key != NULL; member++) {
        bp_model_add_known(json, member->key, member->number);
    }
    bp_json_object_end(json);
}

static void add_identity(bp_json *json, const bp_process_facts *facts) {
    bp_json_add_int(json, "pid", facts->pid);
    bp_model_add_known(json, "parent_pid", facts->parent_pid);
    bp_model_add_name(json, "name", facts->name, sizeof facts->name);
    if (facts->state != 0) {
        bp_json_add_bytes(json, "state", &facts->state, 1);
    }
    bp_json_add_bool(json, "kernel_thread", facts->is_kernel_thread);
    bp_model_add_known(json, "uid", facts->uid);
    bp_model_add_known(json, "gid", facts->gid);
    bp_json_add_text(json, "executable", facts->executable);
    bp_json_add_text(json, "working_directory", facts->working_directory);
}

static void add_counters(bp_json *json, const bp_process_facts *facts) {
    bp_model_add_known(json, "threads", facts->thread_count);
    bp_model_add_known(json, "user_threads", facts->user_thread_count);
    bp_model_add_known(json, "open_files", facts->fd_count);
    bp_model_add_known(json, "mappings", facts->map_count);
    bp_model_add_known(json, "mappings_max", facts->map_max);
    bp_model_add_flag(json, "asynchronous_io", facts->has_aio);
    add_group(json, "context_switches",
              (group_member[]){{"voluntary", facts->voluntary_switches},
                               {"involuntary", facts->involuntary_switches},
                               {.key = NULL}});
    add_group(json, "page_faults",
              (group_member[]){
                  {"minor", facts->minor_faults}, {"major", facts->major_faults}, {.key = NULL}});
    add_group(json, "memory",
              (group_member[]){{"rss_kb", facts->rss_kb},
                               {"peak_rss_kb", facts->peak_rss_kb},
                               {"swap_kb", facts->swap_kb},
                               {"vm_size_kb", facts->vm_size_kb},
                               {"data_kb", facts->data_kb},
                               {.key = NULL}});
    bp_model_add_known(json, "zombie_children", facts->zombie_count);
    if (facts->zombie_count.known && facts->zombie_count.value > 0) {
        bp_model_add_name(json, "zombie_name", facts->zombie_name, sizeof facts->zombie_name);
    }
    add_group(json, "io",
              (group_member[]){{"read_bytes", facts->read_bytes},
                               {"written_bytes", facts->written_bytes},
                               {"read_chars", facts->read_chars},
                               {"written_chars", facts->written_chars},
                               {"read_calls", facts->read_calls},
                               {"write_calls", facts->write_calls},
                               {.key = NULL}});
}

static void add_limits(bp_json *json, const bp_process_facts *facts) {
    if (facts->limit_count == 0) {
        return;
    }
    bp_json_array_begin(json, "limits");
    for (size_t i = 0; i < facts->limit_count; i++) {
        const bp_resource_limit *limit = &facts->limits[i];
        bp_json_object_begin(json, NULL);
        bp_model_add_name(json, "name", limit->name, sizeof limit->name);
        bp_model_add_limit(json, "soft", limit->soft_unlimited, limit->soft);
        bp_model_add_limit(json, "hard", limit->hard_unlimited, limit->hard);
        bp_model_add_known_text(json, "unit", limit->unit);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_loaded_objects(bp_json *json, const bp_process_facts *facts) {
    if (!facts->objects_known) {
        return;
    }
    bp_json_array_begin(json, "loaded_objects");
    for (size_t i = 0; i < facts->object_count; i++) {
        const bp_loaded_object *object = &facts->objects[i];
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "path", object->path);
        bp_model_add_hex(json, "address", object->address);
        bp_model_add_known_text(json, "build_id", object->build_id);
        bp_json_add_bool(json, "deleted", object->deleted);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

bugpack_status bp_process_print(const bp_process_facts *facts, bp_buffer *out,
                                bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    add_identity(&json, facts);
    bp_model_add_command_line(&json, facts->command_line.data, facts->command_line.size);
    if (facts->started_wall_ns.known) {
        bp_model_add_time(&json, "started_at", facts->started_wall_ns.value);
    }
    bp_model_add_known(&json, "start_ticks", facts->start_ticks);
    bp_model_add_known_text(&json, "boot_id", facts->boot_id);
    add_counters(&json, facts);
    bp_json_add_text(&json, "cgroup", facts->cgroup);
    if (facts->has_oom) {
        bp_json_object_begin(&json, "oom");
        bp_json_add_int(&json, "score", facts->oom_score);
        bp_json_add_int(&json, "score_adj", facts->oom_score_adj);
        bp_json_object_end(&json);
    }
    add_limits(&json, facts);
    add_loaded_objects(&json, facts);
    return bp_json_finish(&json, error);
}
