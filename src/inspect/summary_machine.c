#include "inspect/summary_machine.h"

#include <stdio.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"
#include "model/fields.h"

const char *const bp_machine_pressures[BP_MACHINE_PRESSURES] = {"cpu", "memory", "io"};

const char *bp_machine_state_name(const bp_machine_task *thread) {
    const char *word = thread->state[0] != '\0' && thread->state[1] == '\0'
                           ? bp_model_state_word(thread->state[0])
                           : NULL;
    return word != NULL ? word : thread->state[0] != '\0' ? thread->state : "?";
}

void bp_machine_name_period(const bp_machine *machine, char *out, size_t out_bytes) {
    if (machine->window_ms > 0) {
        (void)snprintf(out, out_bytes, "over %.2f s", machine->window_ms / 1000);
    } else {
        (void)snprintf(out, out_bytes, "since they began");
    }
}

/* Busiest first; what has no percent behind what has one. */
static bool is_busier(const bp_machine_task *one, const bp_machine_task *other) {
    if (one->has_percent != other->has_percent) {
        return one->has_percent;
    }
    return one->has_percent && one->cpu_percent != other->cpu_percent
               ? one->cpu_percent > other->cpu_percent
               : one->cpu_ns > other->cpu_ns;
}

static bool is_larger(const bp_machine_task *one, const bp_machine_task *other) {
    return one->rss_kb > other->rss_kb;
}

static void keep(bp_machine_list *list, const bp_machine_task *task,
                 bool (*is_before)(const bp_machine_task *one, const bp_machine_task *other)) {
    size_t at = list->count;
    while (at > 0 && is_before(task, &list->rows[at - 1])) {
        at--;
    }
    if (at < BP_MACHINE_TASK_MAX) {
        list->count += list->count < BP_MACHINE_TASK_MAX;
        memmove(&list->rows[at + 1], &list->rows[at], (list->count - at - 1) * sizeof *task);
        list->rows[at] = *task;
    }
}

/* A bp_json_tree_taker. */
static bugpack_status take_summary(void *context, const bp_json_tree *row, bugpack_error *error) {
    bp_machine *machine = context;
    double duration_ms;
    (void)error;
    bp_utf8_copy(machine->captured_at, sizeof machine->captured_at,
                 bp_json_tree_text(row, "captured_at"));
    (void)bp_json_tree_number(row, "window_ms", &machine->window_ms);
    (void)bp_json_tree_uint(row, "denied_processes", &machine->denied_process_count);
    (void)bp_json_tree_number(row, "ticks_per_sec", &machine->ticks_per_sec);
    if (bp_json_tree_number(row, "machine_uptime_secs", &machine->end_secs) &&
        bp_json_tree_number(row, "duration_ms", &duration_ms)) {
        machine->end_secs += duration_ms / 1000;
    }
    return BUGPACK_OK;
}

/* A group of counters; NULL where it was not measured: of schema 1 it then has zeros. */
static const bp_json_tree *find_group(const bp_json_tree *row, const char *name) {
    char key[40];
    (void)snprintf(key, sizeof key, "%s_measured", name);
    return bp_json_tree_is_true(row, key) ? bp_json_tree_object(row, name) : NULL;
}

/* The scheduler's time is exact; that of stat is counted in ticks. */
static void read_cpu(bp_machine_task *task, const bp_json_tree *row) {
    const bp_json_tree *stat = find_group(row, "stat");
    uint64_t user_ns, system_ns;
    task->has_cpu = bp_json_tree_uint(find_group(row, "schedstat"), "run_ns", &task->cpu_ns);
    if (!task->has_cpu && bp_json_tree_uint(stat, "user_cpu_ns", &user_ns) &&
        bp_json_tree_uint(stat, "system_cpu_ns", &system_ns)) {
        task->has_cpu = true;
        task->cpu_ns = user_ns + system_ns;
    }
}

/* How long a thread has been there at the end of the capture; negative if unknown. */
static double read_age(const bp_machine *machine, const bp_json_tree *row) {
    uint64_t start_ticks;
    return machine->end_secs > 0 && machine->ticks_per_sec > 0 &&
                   bp_json_tree_uint(row, "start_ticks", &start_ticks)
               ? machine->end_secs - (double)start_ticks / machine->ticks_per_sec
               : -1;
}

/* Start times are counted in ticks of 10 ms. */
static const double age_min_secs = 0.1;

static void compute_percent(bp_machine_task *task, double age_secs) {
    task->has_percent = task->has_cpu && age_secs >= age_min_secs;
    task->cpu_percent = task->has_percent ? (double)task->cpu_ns / 1e7 / age_secs : 0;
}

/* What a thread, or its process, used over the window; nothing of one that began after it. */
static void read_use(bp_machine_task *task, const bp_json_tree *use) {
    task->has_percent = bp_json_tree_number(use, "cpu_percent", &task->cpu_percent);
    (void)bp_json_tree_number(use, "children_cpu_ms", &task->children_cpu_ms);
}

static bool has_used(const bp_machine *machine, const bp_machine_task *task) {
    return machine->window_ms > 0 ? task->cpu_percent > 0 || task->children_cpu_ms > 0
                                  : task->has_cpu && task->cpu_ns > 0;
}

static void end_process(bp_machine *machine) {
    bp_machine_task *process = &machine->process;
    if (process->thread_count == 0) {
        return;
    }
    machine->process_count++;
    if (machine->window_ms <= 0) {
        compute_percent(process, machine->process_age_secs);
    }
    bool is_collector = process->pid == machine->collector_pid;
    if (is_collector) {
        machine->has_collector = process->has_percent;
        machine->collector_percent = process->cpu_percent;
    } else if (has_used(machine, process)) {
        keep(&machine->busiest, process, is_busier);
    }
    if (process->has_rss && process->rss_kb > 0) {
        keep(&machine->largest, process, is_larger);
    }
    machine->no_rss_count += !process->has_rss && !process->is_kernel_thread;
}

static void add_to_process(bp_machine *machine, const bp_machine_task *thread,
                           const bp_json_tree *row, double age_secs) {
    bp_machine_task *process = &machine->process;
    process->thread_count++;
    process->running_count += strcmp(thread->state, "R") == 0;
    process->has_cpu = process->has_cpu && thread->has_cpu;
    process->cpu_ns += thread->cpu_ns;
    if (thread->tid == thread->pid) {
        const bp_json_tree *window = bp_json_tree_object(row, "window");
        machine->process_age_secs = age_secs;
        process->is_born = thread->is_born;
        read_use(process, bp_json_tree_object(window, "process"));
        process->has_rss =
            bp_json_tree_uint(find_group(row, "smaps_rollup"), "rss_kb", &process->rss_kb);
    }
}

/* A bp_json_tree_taker. The threads of a process follow each other. */
static bugpack_status take_thread(void *context, const bp_json_tree *row, bugpack_error *error) {
    bp_machine *machine = context;
    bp_machine_task thread = {.is_kernel_thread = bp_json_tree_is_true(row, "kernel_thread")};
    if (!bp_json_tree_uint(row, "tgid", &thread.pid) ||
        !bp_json_tree_uint(row, "tid", &thread.tid)) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "a thread of it has no tgid or no tid");
    }
    bp_utf8_copy(thread.process, sizeof thread.process, bp_json_tree_text(row, "process"));
    bp_utf8_copy(thread.name, sizeof thread.name, bp_json_tree_text(row, "name"));
    bp_utf8_copy(thread.state, sizeof thread.state,
                 bp_json_tree_text(find_group(row, "scheduling"), "state"));
    read_cpu(&thread, row);
    double age_secs = read_age(machine, row);
    if (machine->window_ms > 0) {
        const bp_json_tree *window = bp_json_tree_object(row, "window");
        thread.is_born = bp_json_tree_is_true(window, "born_in_window");
        read_use(&thread, window);
    } else {
        compute_percent(&thread, age_secs);
    }
    if (thread.pid != machine->process.pid || machine->process.thread_count == 0) {
        if (thread.pid < machine->process.pid) {
            return bp_fail(error, BUGPACK_ERR_CORRUPT, "its threads are not sorted by process");
        }
        end_process(machine);
        machine->process = (bp_machine_task){
            .pid = thread.pid, .is_kernel_thread = thread.is_kernel_thread, .has_cpu = true};
        machine->process_age_secs = -1;
        memcpy(machine->process.name, thread.process, sizeof thread.process);
    }
    add_to_process(machine, &thread, row, age_secs);
    machine->thread_count++;
    machine->kernel_thread_count += thread.is_kernel_thread;
    machine->running_count += strcmp(thread.state, "R") == 0;
    machine->blocked_count += strcmp(thread.state, "D") == 0;
    if (thread.pid != machine->collector_pid && has_used(machine, &thread)) {
        keep(&machine->threads, &thread, is_busier);
    }
    return BUGPACK_OK;
}

const bp_json_tree_list bp_machine_lists[] = {
    {"summary", take_summary, true}, {"threads", take_thread, false}, {NULL, NULL, false}};

void bp_machine_end(bp_machine *machine, bool is_whole) {
    end_process(machine);
    machine->is_there = is_whole;
}

void bp_machine_read_system(bp_machine *machine, const bp_json_tree *system) {
    static const char *const averages[] = {"avg1", "avg5", "avg15"};
    const bp_json_tree *load = bp_json_tree_object(system, "load");
    const bp_json_tree *memory = bp_json_tree_object(system, "memory");
    const bp_json_tree *pressure = bp_json_tree_object(system, "pressure");
    machine->has_load = true;
    for (size_t i = 0; i < sizeof averages / sizeof averages[0]; i++) {
        machine->has_load &= bp_json_tree_number(load, averages[i], &machine->load[i]);
    }
    machine->has_memory = bp_json_tree_uint(memory, "total_kb", &machine->total_kb) &&
                          bp_json_tree_uint(memory, "available_kb", &machine->available_kb);
    (void)bp_json_tree_uint(bp_json_tree_object(system, "cpus"), "online", &machine->cpu_count);
    for (size_t i = 0; i < BP_MACHINE_PRESSURES; i++) {
        const bp_json_tree *kind = bp_json_tree_object(pressure, bp_machine_pressures[i]);
        machine->has_pressure[i] = bp_json_tree_number(
            bp_json_tree_object(kind, "some"), "avg10_percent", &machine->pressure_percent[i]);
    }
}
