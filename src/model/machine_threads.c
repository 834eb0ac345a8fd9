#include "model/machine_threads.h"

#include <inttypes.h>
#include <stdio.h>

#include "model/fields.h"

static const struct {
    bp_machine_group group;
    const char *key;
} counters[] = {
#define COUNTER(constant, group, key, kernel_key) {BP_MACHINE_##group, key},
    BP_MACHINE_COUNTERS(COUNTER)
#undef COUNTER
};

static const char *const group_names[] = {
#define NAME(constant, name) name,
    BP_MACHINE_GROUPS(NAME)
#undef NAME
};

static const char *const measured_keys[] = {
#define NAME(constant, name) name "_measured",
    BP_MACHINE_GROUPS(NAME)
#undef NAME
};

const char bp_machine_tail[] = "\n  ]\n}\n";
const char bp_machine_tail_empty[] = "]\n}\n";

const char *bp_machine_group_name(bp_machine_group group) {
    return group_names[group];
}

const char *bp_machine_counter_key(bp_machine_counter counter) {
    return counters[counter].key;
}

bp_machine_group bp_machine_counter_group(bp_machine_counter counter) {
    return counters[counter].group;
}

static bool has_cpu(const bp_cpu_list *list, unsigned cpu) {
    return cpu < BP_CPU_MAX && (list->bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

void bp_machine_print_cpu_list(const bp_cpu_list *list, bp_buffer *out) {
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
    bp_json_add_uint(json, "tgid", thread->tgid);
    bp_json_add_uint(json, "tid", thread->tid);
    bp_model_add_name(json, "process", thread->process_name, sizeof thread->process_name);
    bp_model_add_name(json, "name", thread->name, sizeof thread->name);
    bp_json_add_text(json, "cgroup", thread->cgroup);
    bp_model_add_known_uint(json, "start_ticks", thread->has_start, thread->start_ticks);
    bp_json_add_bool(json, "kernel_thread", thread->is_kernel_thread);
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
    bp_machine_print_cpu_list(affinity, &list);
    if (list.status != BUGPACK_OK) {
        bp_json_fail_memory(json);
    }
    bp_json_add_text(json, "affinity", bp_buffer_text(&list));
    bp_buffer_release(&list);
}

/* The affinity is of another file than the rest, and can be known alone. */
static void add_scheduling(const bp_machine_thread *thread, bp_json *json) {
    bool is_measured = (thread->measured & 1u << BP_MACHINE_STAT) != 0;
    bp_json_add_bool(json, "scheduling_measured", is_measured);
    if (!is_measured && !thread->has_affinity) {
        return;
    }
    bp_json_object_begin(json, "scheduling");
    if (is_measured) {
        bp_json_add_bytes(json, "state", &thread->state, 1);
        bp_model_add_policy(json, thread->policy);
        bp_json_add_int(json, "priority", thread->priority);
        bp_json_add_uint(json, "realtime_priority", thread->rt_priority);
        bp_json_add_int(json, "nice", thread->nice);
        bp_json_add_uint(json, "processor", thread->processor);
    }
    if (thread->has_affinity) {
        add_affinity(&thread->affinity, json);
    }
    bp_json_object_end(json);
}

static void add_group(const bp_machine_thread *thread, bp_machine_group group, bp_json *json) {
    bool is_measured = (thread->measured >> group & 1u) != 0;
    bp_json_add_bool(json, measured_keys[group], is_measured);
    if (!is_measured) {
        return;
    }
    bp_json_object_begin(json, group_names[group]);
    for (size_t i = 0; i < BP_MACHINE_COUNTER_COUNT; i++) {
        if (counters[i].group == group) {
            bp_json_add_uint(json, counters[i].key, thread->counters[i]);
        }
    }
    bp_json_object_end(json);
}

void bp_machine_print_thread(const bp_machine_thread *thread, bp_buffer *out) {
    bp_json json;
    bp_json_begin_elements(&json, out);
    bp_json_object_begin(&json, NULL);
    add_identity(thread, &json);
    add_window(&thread->window, &json);
    add_scheduling(thread, &json);
    for (bp_machine_group group = BP_MACHINE_STAT; group < BP_MACHINE_GROUP_COUNT; group++) {
        if (group != BP_MACHINE_MEMORY || thread->tid == thread->tgid) {
            add_group(thread, group, &json);
        }
    }
    bp_json_add_text(&json, "heap_failure", thread->heap_failure);
    bp_json_object_end(&json);
    bugpack_status status = bp_json_finish(&json, NULL);
    if (out->status == BUGPACK_OK) {
        out->status = status;
    }
}
