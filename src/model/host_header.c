/*
 * What is before the threads in host-threads.json.
 */
#include <stdio.h>
#include <string.h>

#include "model/fields.h"
#include "model/host_threads.h"
#include "json/json.h"

static const char *const cause_names[] = {
#define NAME(constant, name) name,
    BP_HOST_CAUSES(NAME)
#undef NAME
};

static const struct {
    const char *group, *key;
} figures[] = {
#define FIGURE(constant, group, key) {group, key},
    BP_CGROUP_FIGURES(FIGURE)
#undef FIGURE
};

static const char *const pressure_names[BP_PRESSURE_COUNT] = {"cpu", "memory", "io", "irq"};

static bool is_of_the_kernel(size_t cause) {
    return cause == BP_HOST_CAUSE_DISABLED || cause == BP_HOST_CAUSE_MISSING;
}

static const char *advice_on(size_t group, size_t cause) {
    if (cause == BP_HOST_CAUSE_DENIED) {
        return "these files are for root, or for whoever has CAP_SYS_PTRACE";
    }
    if (cause == BP_HOST_CAUSE_DISABLED &&
        (group == BP_HOST_WAKEUPS || group == BP_HOST_WAITS || group == BP_HOST_BLOCKS)) {
        return "this is counted from when root sets kernel.sched_schedstats to 1";
    }
    return "";
}

/* Replaces the dominant cause by one that is more frequent. */
static void consider(bp_host_dominant *dominant, size_t group, const char *cause, uint64_t count,
                     const char *advice) {
    if (count > dominant->count) {
        dominant->group = bp_host_group_name((bp_host_group)group);
        dominant->cause = cause;
        dominant->count = count;
        (void)snprintf(dominant->advice, sizeof dominant->advice, "%s", advice);
    }
}

/* Considers the causes that are, or are not, the kernel's own. */
static void find_among(const bp_host_summary *summary, bool of_the_kernel,
                       bp_host_dominant *dominant) {
    for (size_t group = 0; group < BP_HOST_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_HOST_CAUSE_COUNT; cause++) {
            if (is_of_the_kernel(cause) == of_the_kernel) {
                consider(dominant, group, cause_names[cause], summary->unread[group][cause],
                         advice_on(group, cause));
            }
        }
    }
}

void bp_host_find_dominant(const bp_host_summary *summary, bp_host_dominant *ret_dominant) {
    *ret_dominant = (bp_host_dominant){.group = "", .cause = ""};
    find_among(summary, false, ret_dominant);
    for (size_t i = BP_HEAP_FAILURE_NONE + 1; i < BP_HEAP_FAILURE_COUNT; i++) {
        consider(ret_dominant, BP_HOST_HEAP, bp_heap_failure_name((bp_heap_failure)i),
                 summary->heap_processes[i], summary->heap_reasons[i]);
    }
    if (ret_dominant->count == 0) {
        find_among(summary, true, ret_dominant);
    }
}

static void add_unread(bp_json *json, const bp_host_summary *summary) {
    bp_host_dominant dominant;
    bp_json_array_begin(json, "unread");
    for (size_t group = 0; group < BP_HOST_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_HOST_CAUSE_COUNT; cause++) {
            if (summary->unread[group][cause] > 0) {
                bp_json_object_begin(json, NULL);
                bp_json_add_text(json, "group", bp_host_group_name((bp_host_group)group));
                bp_json_add_text(json, "cause", cause_names[cause]);
                bp_json_add_uint(json, "threads", summary->unread[group][cause]);
                bp_json_object_end(json);
            }
        }
    }
    bp_json_array_end(json);
    bp_host_find_dominant(summary, &dominant);
    if (dominant.count > 0) {
        bp_json_object_begin(json, "dominant_cause");
        bp_json_add_text(json, "group", dominant.group);
        bp_json_add_text(json, "cause", dominant.cause);
        bp_json_add_uint(json, "count", dominant.count);
        bp_model_add_known_text(json, "advice", dominant.advice);
        bp_json_object_end(json);
    }
}

static void add_heap(bp_json *json, const bp_host_summary *summary) {
    bp_json_object_begin(json, "heap");
    bp_json_add_uint(json, "measured_processes", summary->heap_processes[BP_HEAP_FAILURE_NONE]);
    bp_json_add_uint(json, "measured_threads", summary->heap_thread_count);
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

static void add_summary(bp_json *json, const bp_host_summary *summary) {
    bp_json_object_begin(json, "summary");
    bp_model_add_time(json, "captured_at", summary->captured_wall_ns);
    bp_model_add_ms(json, "duration_ms", summary->duration_ns);
    bp_json_add_number(json, "machine_uptime_secs", (double)summary->boottime_ns / 1e9, 3);
    bp_json_add_uint(json, "ticks_per_sec", summary->ticks_per_sec);
    if (summary->self_tgid != 0) {
        bp_json_add_uint(json, "self_tgid", summary->self_tgid);
    }
    bp_json_add_bool(json, "complete", !summary->is_cut);
    bp_json_add_uint(json, "processes", summary->process_count);
    bp_json_add_uint(json, "threads", summary->thread_count);
    bp_json_add_uint(json, "kernel_threads", summary->kernel_thread_count);
    bp_json_add_uint(json, "vanished_processes", summary->vanished_process_count);
    bp_json_add_uint(json, "vanished_threads", summary->vanished_thread_count);
    bp_json_add_uint(json, "denied_processes", summary->denied_process_count);
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

static void add_pressure(bp_json *json, const bp_pressure *pressure) {
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

/* The figures of a group are next to each other. A group of which none is known is left out. */
static void add_figures(bp_json *json, const bp_host_cgroup *cgroup) {
    const char *open_group = "";
    for (size_t i = 0; i < BP_CGROUP_FIGURE_COUNT; i++) {
        const bp_host_figure *figure = &cgroup->figures[i];
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

bugpack_status bp_host_print_header(const bp_host_summary *summary, const bp_host_cgroup *cgroups,
                                    size_t cgroup_count, const bp_pressure *pressure,
                                    bp_buffer *out, bugpack_error *error) {
    bp_json json;
    bp_json_begin(&json, out);
    add_summary(&json, summary);
    bp_json_array_begin(&json, "cgroups");
    for (size_t i = 0; i < cgroup_count; i++) {
        bp_json_object_begin(&json, NULL);
        bp_json_add_text(&json, "path", cgroups[i].path);
        bp_json_add_uint(&json, "threads", cgroups[i].thread_count);
        add_figures(&json, &cgroups[i]);
        add_pressure(&json, cgroups[i].pressure);
        bp_json_object_end(&json);
    }
    bp_json_array_end(&json);
    add_pressure(&json, pressure);
    bp_json_array_begin(&json, "threads");
    bp_json_array_end(&json);
    bugpack_status status = bp_json_finish(&json, error);
    if (status == BUGPACK_OK) {
        out->size -= strlen(bp_host_tail_empty);
        out->data[out->size] = '\0';
    }
    return status;
}
