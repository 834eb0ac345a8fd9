#include "model/host_threads.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "json/json.h"

static const struct {
    bp_host_group group;
    const char *key;
} counters[] = {
#define COUNTER(constant, group, key) {BP_HOST_##group, key},
    BP_HOST_COUNTERS(COUNTER)
#undef COUNTER
};

static const char *const group_names[] = {
#define NAME(constant, name) name,
    BP_HOST_GROUPS(NAME)
#undef NAME
};

const char bp_host_tail[] = "\n  ]\n}\n";
const char bp_host_tail_empty[] = "]\n}\n";

const char *bp_host_group_name(bp_host_group group) {
    return group_names[group];
}

const char *bp_host_counter_key(bp_host_counter counter) {
    return counters[counter].key;
}

bp_host_group bp_host_counter_group(bp_host_counter counter) {
    return counters[counter].group;
}

static bool has_cpu(const bp_cpu_list *list, unsigned cpu) {
    return cpu < BP_CPU_MAX && (list->bits[cpu / 64] >> cpu % 64 & 1) != 0;
}

void bp_host_print_cpu_list(const bp_cpu_list *list, bp_buffer *out) {
    const char *separator = "";
    for (unsigned first = 0; first < BP_CPU_MAX; first++) {
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

/* include/uapi/linux/sched.h of the kernel; "" for one that is not in it. */
static const char *policy_name(uint64_t policy) {
    static const char *const names[] = {"other", "fifo", "rr",       "batch",
                                        "",      "idle", "deadline", "ext"};
    return policy < sizeof names / sizeof names[0] ? names[policy] : "";
}

static void add_text(bp_buffer *out, const char *key, const char *text, size_t text_bytes) {
    (void)bp_buffer_printf(out, ",\n      \"%s\": ", key);
    (void)bp_json_append_string(out, text, text_bytes);
}

static void add_identity(const bp_host_thread *thread, bp_buffer *out) {
    (void)bp_buffer_printf(out, ",\n    {\n      \"tgid\": %" PRIu64 ",\n      \"tid\": %" PRIu64,
                           thread->tgid, thread->tid);
    add_text(out, "process", thread->process_name,
             strnlen(thread->process_name, sizeof thread->process_name));
    add_text(out, "name", thread->name, strnlen(thread->name, sizeof thread->name));
    if (thread->cgroup != NULL) {
        add_text(out, "cgroup", thread->cgroup, strlen(thread->cgroup));
    }
    if (thread->has_start) {
        (void)bp_buffer_printf(out, ",\n      \"start_ticks\": %" PRIu64, thread->start_ticks);
    }
    (void)bp_buffer_printf(out, ",\n      \"kernel_thread\": %s,\n      \"self\": %s",
                           thread->is_kernel_thread ? "true" : "false",
                           thread->is_self ? "true" : "false");
}

static void add_scheduling(const bp_host_thread *thread, bp_buffer *out) {
    bool is_measured = (thread->measured & 1u << BP_HOST_STAT) != 0;
    char state = is_measured ? thread->state : '?';
    (void)bp_buffer_printf(
        out, ",\n      \"scheduling_measured\": %s,\n      \"scheduling\": {\n        \"state\": ",
        is_measured ? "true" : "false");
    (void)bp_json_append_string(out, &state, 1);
    const char *policy = policy_name(thread->policy);
    if (policy[0] != '\0') {
        (void)bp_buffer_printf(out, ",\n        \"policy\": \"%s\"", policy);
    } else {
        (void)bp_buffer_printf(out, ",\n        \"policy\": \"%" PRIu64 "\"", thread->policy);
    }
    (void)bp_buffer_printf(out,
                           ",\n        \"priority\": %" PRId64
                           ",\n        \"realtime_priority\": %" PRIu64
                           ",\n        \"nice\": %" PRId64 ",\n        \"processor\": %" PRIu64,
                           thread->priority, thread->rt_priority, thread->nice, thread->processor);
    if (thread->has_affinity) {
        (void)bp_buffer_append_text(out, ",\n        \"affinity\": \"");
        bp_host_print_cpu_list(&thread->affinity, out);
        (void)bp_buffer_append_char(out, '"');
    }
    (void)bp_buffer_append_text(out, "\n      }");
}

static void add_group(const bp_host_thread *thread, bp_host_group group, bp_buffer *out) {
    const char *separator = "";
    (void)bp_buffer_printf(
        out, ",\n      \"%s_measured\": %s,\n      \"%s\": {", group_names[group],
        (thread->measured >> group & 1u) != 0 ? "true" : "false", group_names[group]);
    for (size_t i = 0; i < BP_HOST_COUNTER_COUNT; i++) {
        if (counters[i].group == group) {
            (void)bp_buffer_printf(out, "%s\n        \"%s\": %" PRIu64, separator, counters[i].key,
                                   thread->counters[i]);
            separator = ",";
        }
    }
    (void)bp_buffer_append_text(out, "\n      }");
}

void bp_host_print_thread(const bp_host_thread *thread, bp_buffer *out) {
    add_identity(thread, out);
    add_scheduling(thread, out);
    for (bp_host_group group = BP_HOST_STAT; group < BP_HOST_GROUP_COUNT; group++) {
        if (group != BP_HOST_MEMORY || thread->tid == thread->tgid) {
            add_group(thread, group, out);
        }
    }
    (void)bp_buffer_append_text(out, "\n    }");
}
