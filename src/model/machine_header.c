/*
 * What is before the threads in host-threads.json.
 */
#include <string.h>

#include "base/status.h"
#include "model/fields.h"
#include "model/machine_threads.h"
#include "model/metadata.h"
#include "json/json.h"

static const struct {
    const char *group, *key;
} figures[] = {
#define FIGURE(constant, group, key) {group, key},
    BP_CGROUP_FIGURES(FIGURE)
#undef FIGURE
};

static const char *const pressure_names[BP_PRESSURE_COUNT] = {"cpu", "memory", "io", "irq"};

static void add_unread(bp_json *json, const bp_machine_summary *summary) {
    bp_machine_dominant dominant;
    bp_json_array_begin(json, "unread");
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
            if (summary->unread[group][cause] > 0) {
                bp_json_object_begin(json, NULL);
                bp_json_add_text(json, "group", bp_machine_group_name((bp_machine_group)group));
                bp_json_add_text(json, "cause", bp_machine_cause_name((bp_machine_cause)cause));
                bp_json_add_uint(json, "threads", summary->unread[group][cause]);
                bp_json_object_end(json);
            }
        }
    }
    bp_json_array_end(json);
    bp_machine_find_dominant(summary, &dominant);
    if (dominant.count > 0) {
        bp_json_object_begin(json, "dominant_cause");
        bp_json_add_text(json, "group", dominant.group);
        bp_json_add_text(json, "cause", dominant.cause);
        bp_json_add_uint(json, "count", dominant.count);
        bp_model_add_known_text(json, "advice", dominant.advice);
        bp_json_object_end(json);
    }
}

/* By errno, so that "Too many open files" is not taken for an end. */
static void add_errors(bp_json *json, const bp_machine_summary *summary) {
    if (summary->error_count == 0) {
        return;
    }
    bp_json_array_begin(json, "errors");
    for (size_t i = 0; i < summary->error_count; i++) {
        const bp_machine_error *found = &summary->errors[i];
        char message[BP_ERRNO_BYTES];
        bp_describe_errno(found->system_errno, message);
        bp_json_object_begin(json, NULL);
        bp_json_add_int(json, "errno", found->system_errno);
        bp_json_add_text(json, "message", message);
        bp_json_add_uint(json, "processes", found->process_count);
        bp_json_add_uint(json, "threads", found->thread_count);
        bp_json_add_uint(json, "files", found->file_count);
        bp_json_object_end(json);
    }
    bp_json_array_end(json);
}

static void add_heap(bp_json *json, const bp_machine_summary *summary) {
    if (!summary->is_heap_probed) {
        return;
    }
    bp_json_object_begin(json, "heap");
    bp_json_add_uint(json, "measured_processes", summary->heap_processes[BP_HEAP_FAILURE_NONE]);
    bp_json_add_uint(json, "measured_threads", summary->heap_thread_count);
    bp_json_add_uint(json, "unread_threads", summary->heap_unread_count);
    bp_json_add_uint(json, "absent_processes", summary->heap_absent_count);
    bp_json_array_begin(json, "failures");
    for (size_t i = BP_HEAP_FAILURE_NONE + 1; i < BP_HEAP_FAILURE_COUNT; i++) {
        if (summary->heap_processes[i] > 0) {
            bp_json_object_begin(json, NULL);
            bp_json_add_text(json, "kind", bp_heap_failure_name((bp_heap_failure)i));
            bp_json_add_uint(json, "processes", summary->heap_processes[i]);
            bp_model_add_known_text(json, "reason", summary->heap_reasons[i]);
            bp_json_object_end(json);
        }
    }
    bp_json_array_end(json);
    bp_json_object_end(json);
}

/* A process that may not be read at all is known to be there, and is counted. */
static bool has_all_threads(const bp_machine_summary *summary) {
    uint64_t missed_count = 0;
    for (size_t i = 0; i < summary->error_count; i++) {
        missed_count += summary->errors[i].process_count + summary->errors[i].thread_count;
    }
    return !summary->is_cut && !summary->is_hidden && missed_count == 0;
}

static void add_summary(bp_json *json, const bp_machine_summary *summary) {
    bp_json_object_begin(json, "summary");
    bp_model_add_time(json, "captured_at", summary->captured_wall_ns);
    bp_model_add_ms(json, "duration_ms", summary->duration_ns);
    if (summary->window_ns > 0) {
        bp_model_add_ms(json, "window_ms", summary->window_ns);
    }
    if (summary->boottime_ns != 0) {
        bp_json_add_number(json, "machine_uptime_secs", (double)summary->boottime_ns / 1e9, 3);
    }
    bp_model_add_known_text(json, "boot_id", summary->boot_id);
    bp_json_add_uint(json, "ticks_per_sec", summary->ticks_per_sec);
    bp_model_add_known_uint(json, "self_tgid", summary->self_tgid != 0, summary->self_tgid);
    bp_json_add_bool(json, "complete", bp_machine_summary_is_complete(summary));
    bp_json_add_bool(json, "threads_complete", has_all_threads(summary));
    bp_model_add_flag(json, "processes_hidden", summary->is_hidden);
    bp_json_add_uint(json, "processes", summary->process_count);
    bp_json_add_uint(json, "threads", summary->thread_count);
    bp_json_add_uint(json, "kernel_threads", summary->kernel_thread_count);
    bp_json_add_uint(json, "vanished_processes", summary->vanished_process_count);
    bp_json_add_uint(json, "vanished_threads", summary->vanished_thread_count);
    bp_json_add_uint(json, "denied_processes", summary->denied_process_count);
    add_errors(json, summary);
    add_unread(json, summary);
    add_heap(json, summary);
    bp_json_object_end(json);
}

static void add_pressure_line(bp_json *json, const char *key, const bp_pressure_line *line) {
    if (line->is_known) {
        bp_json_object_begin(json, key);
        bp_json_add_number(json, "avg10_percent", (double)line->avg10_centi / 100.0, 2);
        bp_json_add_number(json, "avg60_percent", (double)line->avg60_centi / 100.0, 2);
        bp_json_add_number(json, "avg300_percent", (double)line->avg300_centi / 100.0, 2);
        bp_json_add_uint(json, "total_us", line->total_us);
        bp_json_object_end(json);
    }
}

void bp_machine_add_pressure(bp_json *json, const bp_pressure pressure[BP_PRESSURE_COUNT]) {
    bp_json_object_begin(json, "pressure");
    for (size_t i = 0; i < BP_PRESSURE_COUNT; i++) {
        if (pressure[i].some.is_known || pressure[i].full.is_known) {
            bp_json_object_begin(json, pressure_names[i]);
            add_pressure_line(json, "some", &pressure[i].some);
            add_pressure_line(json, "full", &pressure[i].full);
            bp_json_object_end(json);
        }
    }
    bp_json_object_end(json);
}

/* The figures of a group are next to each other. */
void bp_machine_add_figures(bp_json *json, const bp_machine_cgroup *cgroup) {
    const char *open_group = "";
    for (size_t i = 0; i < BP_CGROUP_FIGURE_COUNT; i++) {
        const bp_machine_figure *figure = &cgroup->figures[i];
        if (!figure->is_known) {
            continue;
        }
        if (strcmp(open_group, figures[i].group) != 0) {
            if (open_group[0] != '\0') {
                bp_json_object_end(json);
            }
            open_group = figures[i].group;
            bp_json_object_begin(json, open_group);
        }
        bp_model_add_limit(json, figures[i].key, figure->is_unlimited, figure->value);
    }
    if (open_group[0] != '\0') {
        bp_json_object_end(json);
    }
}

static void add_process(bp_json *json, const bp_machine_process *process) {
    bp_json_object_begin(json, NULL);
    bp_json_add_uint(json, "tgid", process->tgid);
    bp_model_add_name(json, "name", process->name, sizeof process->name);
    bp_json_add_bool(json, "kernel_thread", process->is_kernel_thread);
    bp_json_add_bool(json, "self", process->is_self);
    bp_json_add_uint(json, "threads", process->tid_count);
    bp_model_add_command_line(json, process->command_line, process->command_line_bytes);
    bp_model_add_flag(json, "command_line_cut", process->is_command_line_cut);
    bp_json_add_bool(json, "heap_measured", process->is_heap_measured);
    if (process->heap_failure != BP_HEAP_FAILURE_NONE) {
        bp_json_add_text(json, "heap_failure", bp_heap_failure_name(process->heap_failure));
    }
    bp_json_object_end(json);
}

static void add_cgroup(bp_json *json, const bp_machine_cgroup *cgroup) {
    bp_json_object_begin(json, NULL);
    bp_json_add_text(json, "path", cgroup->path);
    bp_json_add_uint(json, "threads", cgroup->thread_count);
    bp_machine_add_figures(json, cgroup);
    bp_machine_add_pressure(json, cgroup->pressure);
    bp_json_object_end(json);
}

bugpack_status bp_machine_print_header(const bp_machine_header *header, bp_buffer *out,
                                       bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    bp_json_add_int(&json, "schema", BP_SCHEMA_NUMBER);
    add_summary(&json, header->summary);
    bp_json_array_begin(&json, "cgroups");
    for (size_t i = 0; i < header->cgroup_count; i++) {
        add_cgroup(&json, &header->cgroups[i]);
    }
    bp_json_array_end(&json);
    bp_machine_add_pressure(&json, header->pressure);
    bp_json_array_begin(&json, "processes");
    for (size_t i = 0; i < header->process_count; i++) {
        if (header->processes[i].tid_count > 0) {
            add_process(&json, &header->processes[i]);
        }
    }
    bp_json_array_end(&json);
    bp_json_array_begin(&json, "threads");
    bp_json_array_end(&json);
    bugpack_status status = bp_json_finish(&json, error);
    if (status == BUGPACK_OK) {
        out->size -= strlen(bp_machine_tail_empty);
        out->data[out->size] = '\0';
    }
    return status;
}
