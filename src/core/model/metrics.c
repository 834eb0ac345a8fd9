#include "model/metrics.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/status.h"
#include "model/fields.h"
#include "platform/thread.h"

static uint64_t subtract(uint64_t a, uint64_t b) {
    return a > b ? a - b : 0;
}

static uint64_t multiply(uint64_t a, uint64_t b) {
    return a != 0 && b > UINT64_MAX / a ? UINT64_MAX : a * b;
}

static uint64_t add(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

double bp_metrics_cpu_percent(uint64_t before, uint64_t after, uint64_t elapsed) {
    return (double)subtract(after, before) / (double)(elapsed > 0 ? elapsed : 1) * 100.0;
}

static int compare_counters(const void *a_counters, const void *b_counters) {
    const bp_thread_counters *a = a_counters;
    const bp_thread_counters *b = b_counters;
    if (a->tid != b->tid) {
        return a->tid < b->tid ? -1 : 1;
    }
    return (a->birth > b->birth) - (a->birth < b->birth);
}

static bool is_same_thread(const bp_thread_counters *a, const bp_thread_counters *b) {
    return a->tid == b->tid && (a->birth == b->birth || a->birth == 0 || b->birth == 0);
}

static bool is_sorted(const bp_task_snapshot *snapshot) {
    for (size_t i = 1; i < snapshot->thread_count; i++) {
        if (compare_counters(&snapshot->threads[i - 1], &snapshot->threads[i]) > 0) {
            return false;
        }
    }
    return true;
}

void bp_metrics_sort_threads(bp_task_snapshot *snapshot) {
    if (!is_sorted(snapshot)) {
        qsort(snapshot->threads, snapshot->thread_count, sizeof *snapshot->threads,
              compare_counters);
    }
}

/* Converts the difference of two counters to nanoseconds, not each, so that none overflows. */
static void compute_thread(const bp_thread_counters *was, const bp_thread_counters *now,
                           uint64_t unit_ns, uint64_t elapsed_ns, bp_thread_metrics *thread) {
    uint64_t system = subtract(now->system_cpu, was->system_cpu);
    uint64_t user =
        subtract(subtract(now->cpu, now->system_cpu), subtract(was->cpu, was->system_cpu));
    thread->has_cpu = true;
    thread->cpu_ns = multiply(subtract(now->cpu, was->cpu), unit_ns);
    thread->cpu_percent = bp_metrics_cpu_percent(0, thread->cpu_ns, elapsed_ns);
    thread->has_times = was->has_system_cpu && now->has_system_cpu;
    thread->user_ns = multiply(user, unit_ns);
    thread->system_ns = multiply(system, unit_ns);
    thread->page_faults = subtract(now->page_faults, was->page_faults);
    thread->has_faults = (was->is_awake && now->is_awake) || thread->page_faults > 0;
    thread->has_run_delay = was->has_run_delay && now->has_run_delay;
    thread->run_delay_ns = subtract(now->run_delay_ns, was->run_delay_ns);
    thread->has_io = was->has_io && now->has_io;
    thread->read_chars = subtract(now->read_chars, was->read_chars);
    thread->written_chars = subtract(now->written_chars, was->written_chars);
    thread->write_calls = subtract(now->write_calls, was->write_calls);
    thread->has_switches = was->has_switches && now->has_switches;
    thread->voluntary_switches = subtract(now->voluntary_switches, was->voluntary_switches);
    thread->involuntary_switches = subtract(now->involuntary_switches, was->involuntary_switches);
}

/*
 * A thread that the first snapshot lacks: born in between, and then its counters began at 0, or
 * missed, as one of a descendant that could not be read yet.
 */
static void compute_new_thread(const bp_task_snapshot *before, const bp_task_snapshot *after,
                               const bp_thread_counters *now, uint64_t elapsed_ns,
                               bp_thread_metrics *thread) {
    const bp_thread_counters none = {.has_system_cpu = now->has_system_cpu,
                                     .has_switches = now->has_switches,
                                     .is_awake = now->is_awake,
                                     .has_run_delay = now->has_run_delay,
                                     .has_io = now->has_io};
    bool has_birth = now->birth != 0 && after->boottime_ns != 0;
    uint64_t birth_ns = multiply(now->birth, after->birth_unit_ns);
    /* The time of a birth is rounded down. */
    thread->is_born = !has_birth || birth_ns >= subtract(before->boottime_ns, after->birth_unit_ns);
    if (thread->is_born) {
        compute_thread(&none, now, after->cpu_unit_ns, elapsed_ns, thread);
        thread->has_age = has_birth;
        thread->age_ns = has_birth ? subtract(after->boottime_ns, birth_ns) : 0;
    }
}

/* Walks both sorted arrays once. Returns how many of `before` have no counterpart. */
static size_t compute_threads(const bp_task_snapshot *before, const bp_task_snapshot *after,
                              uint64_t elapsed_ns, bp_thread_metrics *threads) {
    size_t at = 0;
    size_t gone_count = 0;
    for (size_t i = 0; i < after->thread_count; i++) {
        const bp_thread_counters *now = &after->threads[i];
        while (at < before->thread_count && !is_same_thread(&before->threads[at], now) &&
               compare_counters(&before->threads[at], now) < 0) {
            at++;
            gone_count++;
        }
        threads[i] = (bp_thread_metrics){.tid = now->tid};
        memcpy(threads[i].name, now->name, sizeof threads[i].name);
        if (at < before->thread_count && is_same_thread(&before->threads[at], now)) {
            compute_thread(&before->threads[at++], now, after->cpu_unit_ns, elapsed_ns,
                           &threads[i]);
        } else {
            compute_new_thread(before, after, now, elapsed_ns, &threads[i]);
        }
    }
    return gone_count + (before->thread_count - at);
}

static void compute_ended_threads(bp_metrics *metrics, uint64_t process_ns, uint64_t unit_ns) {
    uint64_t threads_ns = 0;
    uint64_t rounding_ns = unit_ns;
    metrics->has_ended_threads = true;
    for (size_t i = 0; i < metrics->thread_count; i++) {
        const bp_thread_metrics *thread = &metrics->threads[i];
        metrics->has_ended_threads = metrics->has_ended_threads && thread->has_cpu;
        threads_ns = add(threads_ns, thread->cpu_ns);
        rounding_ns = add(rounding_ns, thread->cpu_ns > 0 ? unit_ns : 0);
    }
    uint64_t rest_ns = subtract(process_ns, threads_ns);
    metrics->ended_threads_ns = rest_ns > rounding_ns ? rest_ns : 0;
}

bugpack_status bp_metrics_compute(bp_task_snapshot *before, bp_task_snapshot *after,
                                  bp_metrics *ret_metrics, bugpack_error *error) {
    if (before->cpu_unit_ns != after->cpu_unit_ns) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "two snapshots count CPU time differently");
    }
    uint64_t elapsed_ns = subtract(after->taken_ns, before->taken_ns);
    uint64_t process_ns =
        add(multiply(subtract(after->process_cpu, before->process_cpu), after->cpu_unit_ns),
            after->extra_ns);
    bp_metrics metrics = {
        .sample_window_ms = elapsed_ns / BP_NS_PER_MS,
        .has_memory = after->has_memory,
        .has_uptime = after->has_uptime,
        .thread_count = after->thread_count,
        .began_ns = before->taken_ns,
        .ended_ns = after->taken_ns,
    };
    if (after->has_memory) {
        metrics.rss_kb = after->rss_bytes / 1024;
        metrics.vm_size_kb = after->vm_size_bytes / 1024;
    }
    if (after->has_uptime) {
        metrics.uptime_secs = (double)after->uptime_ns / (double)BP_NS_PER_SEC;
    }
    if (after->thread_count > 0) {
        metrics.threads = calloc(after->thread_count, sizeof *metrics.threads);
        if (metrics.threads == NULL) {
            return bp_fail_memory(error, "compute the metrics");
        }
    }
    bp_metrics_sort_threads(before);
    bp_metrics_sort_threads(after);
    size_t gone_count = compute_threads(before, after, elapsed_ns, metrics.threads);
    /* The threads are read a little later, and all is counted in ticks: the process cannot have
     * used less than one of them. */
    for (size_t i = 0; i < metrics.thread_count; i++) {
        process_ns =
            metrics.threads[i].cpu_ns > process_ns ? metrics.threads[i].cpu_ns : process_ns;
    }
    metrics.cpu_percent = bp_metrics_cpu_percent(0, process_ns, elapsed_ns);
    compute_ended_threads(&metrics, process_ns, after->cpu_unit_ns);
    /* A thread that ended while the second snapshot was read is in the first one too, unless it was
     * born in between: the larger of the two counts has each at least once, the sum some twice. */
    if (gone_count < after->vanished_count) {
        gone_count = after->vanished_count;
    }
    uint64_t vanished_count = add(gone_count, before->vanished_count);
    metrics.vanished_count = vanished_count < SIZE_MAX ? (size_t)vanished_count : SIZE_MAX;
    metrics.unread_count =
        after->unread_count > before->unread_count ? after->unread_count : before->unread_count;
    *ret_metrics = metrics;
    return BUGPACK_OK;
}

void bp_metrics_release(bp_metrics *metrics) {
    free(metrics->threads);
    *metrics = (bp_metrics){0};
}

static bool is_at(uint64_t end_ns, uint64_t triggered_ns) {
    return subtract(end_ns, triggered_ns) <= BP_METRICS_AT_TRIGGER_NS &&
           subtract(triggered_ns, end_ns) <= BP_METRICS_AT_TRIGGER_NS;
}

void bp_metrics_describe(const bp_metrics *metrics, uint64_t triggered_ns, char *out,
                         size_t out_bytes) {
    uint64_t began_ns = metrics->began_ns;
    uint64_t ended_ns = metrics->ended_ns;
    bool is_after = began_ns > triggered_ns || is_at(began_ns, triggered_ns);
    is_after = is_after && !is_at(ended_ns, triggered_ns);
    uint64_t end_ns = is_after ? began_ns : ended_ns;
    char distance[40] = "at";
    char ended[80] = "";
    if (!is_at(end_ns, triggered_ns)) {
        bool is_late = end_ns > triggered_ns;
        uint64_t off_ns = is_late ? end_ns - triggered_ns : triggered_ns - end_ns;
        (void)snprintf(distance, sizeof distance, "%llu ms %s",
                       (unsigned long long)(off_ns / BP_NS_PER_MS), is_late ? "after" : "before");
    }
    if (metrics->vanished_count > 0) { /* such a thread has no row in the metrics */
        (void)snprintf(ended, sizeof ended, "; threads that ended inside the window: at least %zu",
                       metrics->vanished_count);
    }
    (void)snprintf(out, out_bytes, "the window %s %s the trigger%s", is_after ? "begins" : "ends",
                   distance, ended);
}

static void add_command(bp_json *json, const bp_child_command *command) {
    int status = command->status;
    bool has_signal = command->failed_count > 0 && WIFSIGNALED(status);
    bp_json_object_begin(json, NULL);
    bp_model_add_name(json, "name", command->name, sizeof command->name);
    bp_model_add_flag(json, "own", command->is_own);
    bp_json_add_uint(json, "count", command->count);
    bp_model_add_ms(json, "longest_ms", command->longest_ns);
    bp_json_add_uint(json, "succeeded", command->succeeded_count);
    bp_json_add_uint(json, "failed", command->failed_count);
    bp_model_add_known_uint(json, "status", command->failed_count > 0 && WIFEXITED(status),
                            (uint64_t)WEXITSTATUS(status));
    bp_model_add_known_text(json, "signal",
                            has_signal ? bp_model_signal_name(WTERMSIG(status)) : NULL);
    bp_json_object_end(json);
}

static void add_children(bp_json *json, const bp_children *children) {
    bp_json_object_begin(json, "children");
    bp_json_add_uint(json, "looks", children->look_count);
    bp_json_add_uint(json, "ended_at_least", children->ended_count);
    bp_model_add_known_uint(json, "count_at_first", children->has_counts, children->first_count);
    bp_model_add_known_uint(json, "count_at_last", children->has_counts, children->last_count);
    bp_model_add_known_uint(json, "parent_read_chars", children->has_reads, children->read_chars);
    bp_json_array_begin(json, "commands");
    for (size_t i = 0; i < children->command_count; i++) {
        add_command(json, &children->commands[i]);
    }
    bp_json_array_end(json);
    bp_model_add_flag(json, "has_more_commands", children->has_more_commands);
    bp_json_object_end(json);
}

static void add_process(bp_json *json, const bp_metrics *metrics) {
    bp_json_object_begin(json, "process");
    bp_json_add_number(json, "cpu_percent", metrics->cpu_percent, 2);
    bp_model_add_known_ms(json, "ended_threads_cpu_ms", metrics->has_ended_threads,
                          metrics->ended_threads_ns);
    bp_model_add_known_uint(json, "ended_threads_at_least", metrics->vanished_count > 0,
                            metrics->vanished_count);
    if (metrics->has_memory) {
        bp_json_add_uint(json, "rss_kb", metrics->rss_kb);
        bp_json_add_uint(json, "vm_size_kb", metrics->vm_size_kb);
    }
    if (metrics->memory_count > 2) { /* the end is above */
        bp_json_array_begin(json, "rss_samples");
        for (size_t i = 0; i < metrics->memory_count; i++) {
            bp_json_object_begin(json, NULL);
            bp_model_add_ms(json, "at_ms",
                            subtract(metrics->memory[i].taken_ns, metrics->began_ns));
            bp_json_add_uint(json, "rss_kb", metrics->memory[i].rss_kb);
            bp_json_add_uint(json, "vm_size_kb", metrics->memory[i].vm_size_kb);
            bp_json_add_uint(json, "thread_count", metrics->memory[i].thread_count);
            bp_model_add_known_uint(json, "file_count", metrics->memory[i].file_count > 0,
                                    metrics->memory[i].file_count);
            bp_model_add_known_uint(json, "child_count", metrics->memory[i].has_children,
                                    metrics->memory[i].child_count);
            bp_json_object_end(json);
        }
        bp_json_array_end(json);
    }
    bool has_children = metrics->children.ended_count > 0 || metrics->children.last_count > 0 ||
                        metrics->children.command_count > 0;
    if (has_children) {
        add_children(json, &metrics->children);
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
    bp_json_add_number(json, "cpu_percent", thread->is_born ? 0 : thread->cpu_percent, 2);
    bp_model_add_known_ms(json, "cpu_ms", thread->has_cpu, thread->cpu_ns);
    bp_model_add_flag(json, "own", bp_thread_is_own(thread->name));
    bp_model_add_flag(json, "born_in_window", thread->is_born);
    bp_model_add_known_ms(json, "age_ms", thread->has_age, thread->age_ns);
    bp_model_add_known_ms(json, "user_ms", thread->has_times, thread->user_ns);
    bp_model_add_known_ms(json, "system_ms", thread->has_times, thread->system_ns);
    bp_model_add_known_uint(json, "page_faults", thread->has_faults, thread->page_faults);
    bp_model_add_known_ms(json, "run_delay_ms", thread->has_run_delay, thread->run_delay_ns);
    bp_model_add_known_uint(json, "read_chars", thread->has_io, thread->read_chars);
    bp_model_add_known_uint(json, "written_chars", thread->has_io, thread->written_chars);
    bp_model_add_known_uint(json, "write_calls", thread->has_io, thread->write_calls);
    bp_model_add_switches(json, thread->has_switches, thread->voluntary_switches,
                          thread->involuntary_switches);
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
