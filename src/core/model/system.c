#include "model/system.h"

#include <stdlib.h>
#include <string.h>

#include "json/json.h"
#include "model/fields.h"
#include "model/machine_threads.h"
#include "model/metadata.h"
#include "model/open_files.h"

static const struct {
    const char *group, *name, *key;
} rows[] = {
#define ROW(constant, group, name, key) {group, name, key},
    BP_SYSTEM_MEMORY(ROW)
#undef ROW
};

const char *bp_system_memory_key(size_t row) {
    return rows[row].key;
}

void bp_system_forget_process(bp_system *system) {
    for (size_t i = 0; i < system->cgroup_count; i++) {
        free(system->cgroups[i].path);
    }
    for (size_t i = 0; i < system->filesystem_count; i++) {
        free(system->filesystems[i].file);
    }
    free(system->executable);
    system->executable = NULL;
    system->cgroup_count = system->filesystem_count = 0;
    system->has_process = false;
    system->cpu_usable_count.known = false;
}

void bp_system_release(bp_system *system) {
    bp_system_forget_process(system);
    *system = (bp_system){.cgroup_count = 0};
}

static void add_identity(bp_json *json, const bp_system *system) {
    bp_model_add_known_text(json, "hostname", system->hostname);
    if (system->distribution_id[0] != '\0' || system->distribution_name[0] != '\0') {
        bp_json_object_begin(json, "distribution");
        bp_model_add_known_text(json, "id", system->distribution_id);
        bp_model_add_known_text(json, "version", system->distribution_version);
        bp_model_add_known_text(json, "name", system->distribution_name);
        bp_json_object_end(json);
    }
    bp_json_object_begin(json, "kernel");
    bp_model_add_known_text(json, "name", system->kernel_name);
    bp_model_add_known_text(json, "release", system->kernel_release);
    bp_model_add_known_text(json, "version", system->kernel_version);
    bp_model_add_known_text(json, "architecture", system->architecture);
    bp_json_object_end(json);
    if (system->uptime_ns != 0) {
        bp_model_add_time(json, "booted_at", system->boot_wall_ns);
        bp_json_add_number(json, "uptime_secs", (double)system->uptime_ns / 1e9, 3);
    }
    bp_json_object_begin(json, "cpus");
    bp_model_add_known_text(json, "model", system->cpu_model);
    bp_model_add_known(json, "possible", system->cpu_count);
    bp_model_add_known(json, "online", system->cpu_online_count);
    bp_model_add_known(json, "usable", system->cpu_usable_count);
    bp_json_object_end(json);
}

static void add_memory(bp_json *json, const bp_system *system) {
    for (size_t i = 0; i < BP_SYSTEM_MEMORY_COUNT; i++) {
        if (i == 0 || strcmp(rows[i].group, rows[i - 1].group) != 0) {
            bp_json_object_begin(json, rows[i].group);
        }
        bp_model_add_known(json, rows[i].name, system->memory[i]);
        if (i == BP_SYSTEM_COMMITTED) {
            bp_model_add_known(json, "oom_kills_in_session", system->oom_kills);
        }
        if (i + 1 == BP_SYSTEM_MEMORY_COUNT || strcmp(rows[i].group, rows[i + 1].group) != 0) {
            bp_json_object_end(json);
        }
    }
}

static void add_container(bp_json *json, const bp_system *system) {
    bp_json_add_text(json, "container", system->container);
    bp_json_array_begin(json, "cgroups");
    for (size_t i = 0; i < system->cgroup_count; i++) {
        bp_json_object_begin(json, NULL);
        bp_json_add_text(json, "path", system->cgroups[i].path);
        bp_machine_add_figures(json, &system->cgroups[i]);
        bp_machine_add_pressure(json, system->cgroups[i].pressure);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_filesystem(bp_json *json, const bp_filesystem *filesystem) {
    static const char *const names[] = {
#define NAME(constant, name) name,
        BP_SYSTEM_PLACE(NAME)
#undef NAME
    };
    double used = (double)filesystem->used_bytes;
    double usable = used + (double)filesystem->available_bytes;
    bp_json_object_begin(json, NULL);
    bp_json_array_begin(json, "of");
    for (size_t i = 0; i < BP_SYSTEM_PLACE_COUNT; i++) {
        if (filesystem->is_of[i]) {
            bp_json_add_text(json, NULL, names[i]);
        }
    }
    bp_json_array_end(json);
    bp_model_add_path(json, "file", filesystem->file);
    bp_json_add_uint(json, "total_bytes", filesystem->total_bytes);
    bp_json_add_uint(json, "available_bytes", filesystem->available_bytes);
    if (usable > 0) {
        bp_json_add_number(json, "used_percent", 100 * used / usable, 1);
    }
    bool counts_inodes = filesystem->inode_count > 0;
    bp_model_add_known_uint(json, "total_inodes", counts_inodes, filesystem->inode_count);
    bp_model_add_known_uint(json, "free_inodes", counts_inodes, filesystem->inodes_free);
    bp_model_add_flag(json, "read_only", filesystem->is_read_only);
    bp_json_object_end(json);
}

static void add_executable(bp_json *json, const bp_system *system) {
    bp_json_object_begin(json, "executable");
    bp_json_add_text(json, "path", system->executable);
    bp_model_add_flag(json, "deleted", system->is_executable_deleted);
    bp_json_object_end(json);
}

bugpack_status bp_system_print(const bp_system *system, bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    add_identity(&json, system);
    add_memory(&json, system);
    if (system->has_load) {
        const bp_load *load = &system->load;
        bp_json_object_begin(&json, "load");
        bp_json_add_number(&json, "avg1", (double)load->centi[0] / 100.0, 2);
        bp_json_add_number(&json, "avg5", (double)load->centi[1] / 100.0, 2);
        bp_json_add_number(&json, "avg15", (double)load->centi[2] / 100.0, 2);
        bp_json_add_uint(&json, "runnable_threads", load->runnable_count);
        bp_json_add_uint(&json, "threads", load->thread_count);
        bp_json_object_end(&json);
    }
    bp_machine_add_pressure(&json, system->pressure);
    if (system->has_process || system->cgroup_count > 0) {
        add_container(&json, system);
    }
    if (system->has_process && system->filesystem_count > 0) {
        bp_json_array_begin(&json, "filesystems");
        for (size_t i = 0; i < system->filesystem_count; i++) {
            add_filesystem(&json, &system->filesystems[i]);
        }
        bp_json_array_end(&json);
    }
    if (system->executable != NULL) {
        add_executable(&json, system);
    }
    return bp_json_finish(&json, error);
}
