#include "model/machine_threads.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/fields.h"
#include "model/metadata.h"

static const struct {
    bp_thread_group group;
    const char *key;
} counters[] = {
#define COUNTER(constant, group, key, kernel_key) {BP_GROUP_##group, key},
    BP_THREAD_COUNTERS(COUNTER)
#undef COUNTER
};

static const char *const group_names[] = {
#define NAME(constant, name) name,
    BP_THREAD_GROUPS(NAME)
#undef NAME
};

static const char *const measured_keys[] = {
#define NAME(constant, name) name "_measured",
    BP_THREAD_GROUPS(NAME)
#undef NAME
};

const char bp_machine_tail[] = "\n  ]\n}\n";
const char bp_machine_tail_empty[] = "]\n}\n";

static const char *const cause_names[] = {
#define NAME(constant, name) name,
    BP_MACHINE_CAUSES(NAME)
#undef NAME
};

/* --- what a capture came to ------------------------------------------------------------------ */

void bp_machine_process_release(bp_machine_process *process) {
    free(process->command_line);
    free(process->threads.items);
    free(process->heap);
    *process = (bp_machine_process){.tgid = 0};
}

bp_machine_error *bp_machine_summary_error(bp_machine_summary *summary, int system_errno) {
    size_t i = 0;
    while (i < summary->error_count && summary->errors[i].system_errno != system_errno) {
        i++;
    }
    if (i == BP_MACHINE_ERROR_MAX) {
        return &summary->errors[BP_MACHINE_ERROR_MAX - 1];
    }
    if (i == summary->error_count) {
        summary->errors[summary->error_count++] = (bp_machine_error){.system_errno = system_errno};
    }
    return &summary->errors[i];
}

/* A cause is a loss if the thread is there, and the kernel shows to somebody what it lacks. */
static bool is_loss(size_t cause) {
    return cause != BP_MACHINE_CAUSE_DISABLED && cause != BP_MACHINE_CAUSE_MISSING &&
           cause != BP_MACHINE_CAUSE_VANISHED;
}

static uint64_t count_denials(const bp_machine_summary *summary) {
    uint64_t count = summary->denied_process_count;
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        count += summary->unread[group][BP_MACHINE_CAUSE_DENIED];
    }
    return count;
}

bool bp_machine_summary_has_loss(const bp_machine_summary *summary) {
    uint64_t loss_count = summary->error_count;
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
            bool is_counted = is_loss(cause) && cause != BP_MACHINE_CAUSE_DENIED;
            loss_count += is_counted ? summary->unread[group][cause] : 0;
        }
    }
    return summary->is_cut || loss_count > 0;
}

bool bp_machine_summary_is_complete(const bp_machine_summary *summary) {
    return !bp_machine_summary_has_loss(summary) && !summary->is_hidden &&
           count_denials(summary) == 0;
}

/* One more part of a list, as much of it as fits. */
BUGPACK_PRINTF(4, 5)
static void add_part(char *out, size_t out_bytes, const char *joint, const char *format, ...) {
    size_t used = strlen(out);
    if (used > 0 && used < out_bytes) {
        used += (size_t)snprintf(out + used, out_bytes - used, "%s", joint);
    }
    if (used < out_bytes) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(out + used, out_bytes - used, format, arguments);
        va_end(arguments);
    }
}

static const char *noun(uint64_t count, const char *one, const char *several) {
    return count == 1 ? one : several;
}

static void explain_errors(const bp_machine_summary *summary, char *out, size_t out_bytes) {
    for (size_t i = 0; i < summary->error_count; i++) {
        const bp_machine_error *found = &summary->errors[i];
        const struct {
            uint64_t count;
            const char *of;
        } counts[] = {{found->process_count, noun(found->process_count, "process", "processes")},
                      {found->thread_count, noun(found->thread_count, "thread", "threads")},
                      {found->file_count, noun(found->file_count, "other file", "other files")}};
        const char *joint = "; ";
        char message[BP_ERRNO_BYTES];
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            if (counts[j].count > 0) {
                add_part(out, out_bytes, joint, "%" PRIu64 " %s", counts[j].count, counts[j].of);
                joint = ", ";
            }
        }
        bp_describe_errno(found->system_errno, message);
        add_part(out, out_bytes, "", ": %s%s", message,
                 found->system_errno == EMFILE ? " (a higher \"ulimit -n\" helps)" : "");
    }
}

static void explain_groups(const bp_machine_summary *summary, char *out, size_t out_bytes) {
    /* Each kernel thread is a process without memory; one may have ended since it was counted. */
    uint64_t kernel_count = summary->kernel_thread_count;
    uint64_t user_process_count =
        summary->process_count > kernel_count ? summary->process_count - kernel_count : 0;
    for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
        const char *joint = "; ";
        /* Files that failed with another errno are counted by errno, in explain_errors. */
        bool is_shown = is_loss(cause) && cause != BP_MACHINE_CAUSE_OTHER;
        for (size_t group = 0; is_shown && group < BP_MACHINE_GROUP_COUNT; group++) {
            uint64_t count = summary->unread[group][cause];
            bool is_memory = group == BP_GROUP_MEMORY; /* first threads alone have it */
            if (count > 0) {
                add_part(out, out_bytes, joint, "%s of %" PRIu64 " of %" PRIu64 " %s (%s)",
                         group_names[group], count,
                         is_memory ? user_process_count : summary->thread_count,
                         is_memory ? "user processes" : "threads", cause_names[cause]);
                joint = ", ";
            }
        }
    }
}

void bp_machine_summary_explain(const bp_machine_summary *summary, char *out, size_t out_bytes) {
    out[0] = '\0';
    if (summary->is_cut) {
        add_part(out, out_bytes, "; ", "it was ended before all threads were read");
    }
    if (summary->is_hidden) {
        add_part(out, out_bytes, "; ",
                 "/proc hides the processes of other users (hidepid); root sees them");
    }
    explain_errors(summary, out, out_bytes);
    if (summary->denied_process_count > 0) {
        add_part(out, out_bytes, "; ", "%" PRIu64 " %s (denied)", summary->denied_process_count,
                 noun(summary->denied_process_count, "process", "processes"));
    }
    explain_groups(summary, out, out_bytes);
    for (size_t i = BP_HEAP_FAILURE_NONE + 1; i < BP_HEAP_FAILURE_COUNT; i++) {
        if (summary->heap_processes[i] > 0) {
            add_part(out, out_bytes, ", ", "heap of %" PRIu64 " %s (%s)",
                     summary->heap_processes[i],
                     noun(summary->heap_processes[i], "process", "processes"),
                     bp_heap_failure_name((bp_heap_failure)i));
        }
    }
    if (count_denials(summary) > 0) {
        add_part(out, out_bytes, "; ", "%s",
                 summary->is_root
                     ? "a container or a security module keeps CAP_SYS_PTRACE from this root"
                     : "these files are for root, or for whoever has CAP_SYS_PTRACE");
    }
}

/* --- what is before the threads -------------------------------------------------------------- */

static const struct {
    const char *group, *key;
} figures[] = {
#define FIGURE(constant, group, key) {group, key},
    BP_CGROUP_FIGURES(FIGURE)
#undef FIGURE
};

static const char *const pressure_names[BP_PRESSURE_COUNT] = {"cpu", "memory", "io", "irq"};

static void add_unread(bp_json *json, const bp_machine_summary *summary) {
    bp_json_array_begin(json, "unread");
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
            if (summary->unread[group][cause] > 0) {
                bp_json_object_begin(json, NULL);
                bp_json_add_text(json, "group", group_names[group]);
                bp_json_add_text(json, "cause", cause_names[cause]);
                bp_json_add_uint(json, "threads", summary->unread[group][cause]);
                bp_json_object_end(json);
            }
        }
    }
    bp_json_array_end(json);
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
    bp_model_add_known_ms(json, "window_ms", summary->window_ns > 0, summary->window_ns);
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
    bp_json_add_uint(json, "threads", process->threads.count);
    bp_model_add_command_line(json, process->command_line, process->command_line_bytes);
    bp_model_add_flag(json, "command_line_cut", process->is_command_line_cut);
    bp_json_add_bool(json, "heap_measured", process->is_heap_measured);
    if (process->heap_failure != BP_HEAP_FAILURE_NONE) {
        bp_json_add_text(json, "heap_failure", bp_heap_failure_name(process->heap_failure));
    }
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
        const bp_machine_cgroup *cgroup = &header->cgroups[i];
        bp_json_object_begin(&json, NULL);
        bp_json_add_text(&json, "path", cgroup->path);
        bp_json_add_uint(&json, "threads", cgroup->thread_count);
        bp_machine_add_figures(&json, cgroup);
        bp_machine_add_pressure(&json, cgroup->pressure);
        bp_json_object_end(&json);
    }
    bp_json_array_end(&json);
    bp_machine_add_pressure(&json, header->pressure);
    bp_json_array_begin(&json, "processes");
    for (size_t i = 0; i < header->process_count; i++) {
        if (header->processes[i].threads.count > 0) {
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

/* --- a thread -------------------------------------------------------------------------------- */

static bool has_cpu(const bp_cpu_list *list, unsigned cpu) {
    return cpu < BP_CPU_MAX && (list->bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

void bp_cpu_list_print(const bp_cpu_list *list, bp_buffer *out) {
    const char *separator = "";
    for (unsigned first = 0; first < BP_CPU_MAX; first++) {
        if (list->bits[first / 64] == 0) {
            first |= 63; /* on to the next word */
            continue;
        }
        if (!has_cpu(list, first)) {
            continue;
        }
        unsigned last = first;
        while (has_cpu(list, last + 1)) {
            last++;
        }
        (void)bp_buffer_printf(out, last > first ? "%s%u-%u" : "%s%u", separator, first, last);
        separator = ",";
        first = last;
    }
}

static void add_identity(const bp_machine_thread *thread, bp_json *json) {
    const bp_proc_stat *stat = &thread->read.stat;
    bp_json_add_uint(json, "tgid", thread->tgid);
    bp_json_add_uint(json, "tid", thread->read.tid);
    bp_model_add_name(json, "process", thread->process_name, sizeof thread->process_name);
    bp_model_add_name(json, "name", stat->name, sizeof stat->name);
    bp_json_add_text(json, "cgroup", thread->cgroup);
    bp_model_add_known_uint(json, "start_ticks", bp_thread_has(&thread->read, BP_GROUP_STAT),
                            stat->start_ticks);
    bp_json_add_bool(json, "kernel_thread", stat->is_kernel_thread);
    bp_json_add_bool(json, "self", thread->is_self);
}

static void add_use(bp_json *json, uint64_t cpu_ns, uint64_t elapsed_ns) {
    bp_model_add_ms(json, "cpu_ms", cpu_ns);
    if (elapsed_ns > 0) {
        bp_json_add_number(json, "cpu_percent", (double)cpu_ns / (double)elapsed_ns * 100, 2);
    }
}

static void add_window(const bp_machine_window *window, bp_json *json) {
    if (!window->is_known) {
        return;
    }
    bp_json_object_begin(json, "window");
    add_use(json, window->cpu_ns, window->elapsed_ns);
    bp_model_add_flag(json, "born_in_window", window->is_born);
    if (window->has_process) {
        bp_json_object_begin(json, "process");
        add_use(json, window->process_ns, window->elapsed_ns);
        bp_model_add_ms(json, "children_cpu_ms", window->children_ns);
        bp_json_object_end(json);
    }
    bp_json_object_end(json);
}

static void add_affinity(const bp_cpu_list *affinity, bp_json *json) {
    bp_buffer list;
    bp_buffer_init(&list, 6 * BP_CPU_MAX);
    bp_cpu_list_print(affinity, &list);
    if (list.status != BUGPACK_OK) {
        bp_json_fail_memory(json);
    }
    bp_json_add_text(json, "affinity", bp_buffer_text(&list));
    bp_buffer_release(&list);
}

/* The affinity is of another file than the rest, and can be known alone. */
static void add_scheduling(const bp_thread_reading *thread, bp_json *json) {
    const bp_proc_stat *stat = &thread->stat;
    bool is_measured = bp_thread_has(thread, BP_GROUP_STAT);
    bool has_affinity = bp_thread_has(thread, BP_GROUP_AFFINITY);
    bp_json_add_bool(json, "scheduling_measured", is_measured);
    if (!is_measured && !has_affinity) {
        return;
    }
    bp_json_object_begin(json, "scheduling");
    if (is_measured) {
        bp_json_add_bytes(json, "state", &stat->state, 1);
        bp_model_add_scheduling(json, stat);
    }
    if (has_affinity) {
        add_affinity(thread->affinity, json);
    }
    bp_json_object_end(json);
}

static void add_group(const bp_thread_reading *thread, bp_thread_group group, bp_json *json) {
    bool is_measured = bp_thread_has(thread, group);
    bp_json_add_bool(json, measured_keys[group], is_measured);
    if (!is_measured) {
        return;
    }
    bp_json_object_begin(json, group_names[group]);
    for (size_t i = 0; i < BP_COUNTER_COUNT; i++) {
        if (counters[i].group == group) {
            bp_json_add_uint(json, counters[i].key, thread->counters[i]);
        }
    }
    bp_json_object_end(json);
}

void bp_machine_print_thread(const bp_machine_thread *thread, bp_buffer *out) {
    const bp_thread_reading *read = &thread->read;
    bool is_first = read->tid == thread->tgid;
    bp_json json;
    bp_json_begin_elements(&json, out);
    bp_json_object_begin(&json, NULL);
    add_identity(thread, &json);
    add_window(&thread->window, &json);
    add_scheduling(read, &json);
    if (read->has_rss && is_first) {
        bp_json_add_uint(&json, "rss_kb", read->rss_kb);
    }
    for (bp_thread_group group = BP_GROUP_STAT; group < BP_MACHINE_GROUP_COUNT; group++) {
        if (group != BP_GROUP_MEMORY || is_first) {
            add_group(read, group, &json);
        }
    }
    bp_json_add_text(&json, "heap_failure", thread->heap_failure);
    bp_json_object_end(&json);
    bugpack_status status = bp_json_finish(&json, NULL);
    if (out->status == BUGPACK_OK) {
        out->status = status;
    }
}
