/* What a report says of threads: all of a process by their names, those in a deadlock, and those of
 * the whole machine. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/status.h"
#include "base/utf8.h"
#include "inspect/summary.h"
#include "model/fields.h"

/* --- of a process ------------------------------------------------------------------------- */

const char *bp_summary_born_words(const bp_summary_thread *thread) {
    const char *words = thread->state[0] != '\0' ? "born in the window, " : "born in the window";
    return thread->is_born ? words : "";
}

const char *bp_summary_wait_words(const bp_summary_thread *thread) {
    return thread->waits_for[0] == '\0' ? ""
           : thread->waits_for_thread   ? ", waits for thread "
                                        : ", waits on ";
}

/* Busiest first; then by name, so that equal reports have equal lines. */
static int compare_cpu(const void *one, const void *other) {
    const bp_summary_name *first = one, *second = other;
    return first->cpu_percent != second->cpu_percent
               ? (first->cpu_percent < second->cpu_percent) -
                     (first->cpu_percent > second->cpu_percent)
               : strcmp(first->name, second->name);
}

/* The slot of a name, or the free one where it belongs. */
static uint32_t *find_slot(const bp_summary_names *names, const char *name) {
    size_t at = (size_t)XXH3_64bits_withSeed(name, strlen(name), names->seed);
    for (;; at++) {
        uint32_t *slot = &names->slots[at & (names->slot_count - 1)];
        if (*slot == 0 || strcmp(names->rows[*slot - 1].name, name) == 0) {
            return slot;
        }
    }
}

/* Makes room for a name. Half of the slots stay free. */
static bool reserve(bp_summary_names *names) {
    enum { slots_min = 64 };
    if (!bp_array_reserve(&names->rows, names->count, &names->capacity)) {
        return false;
    }
    if (2 * (names->count + 1) <= names->slot_count) {
        return true;
    }
    size_t slot_count = names->slot_count > 0 ? 2 * names->slot_count : slots_min;
    uint32_t *slots = calloc(slot_count, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(names->slots);
    names->slots = slots;
    names->slot_count = slot_count;
    names->seed = bp_clock_monotonic_ns() ^ (uint64_t)(uintptr_t)slots << 20;
    for (size_t i = 0; i < names->count; i++) {
        *find_slot(names, names->rows[i].name) = (uint32_t)(i + 1);
    }
    return true;
}

bugpack_status bp_summary_add_name(bp_summary_names *names, const bp_json_tree *thread,
                                   bugpack_error *error) {
    bp_summary_name row = {.count = 1};
    const char *name = bp_json_tree_text(thread, "name");
    if (name == NULL || !bp_json_tree_number(thread, "cpu_percent", &row.cpu_percent)) {
        return BUGPACK_OK;
    }
    bp_utf8_copy(row.name, sizeof row.name, name);
    if (bp_json_tree_is_true(thread, "born_in_window")) {
        (void)bp_json_tree_number(thread, "cpu_ms", &row.born_cpu_ms);
    }
    if (!reserve(names)) {
        return bp_fail_memory(error, "read a report");
    }
    uint32_t *slot = find_slot(names, row.name);
    if (*slot != 0) {
        names->rows[*slot - 1].count++;
        names->rows[*slot - 1].cpu_percent += row.cpu_percent;
        names->rows[*slot - 1].born_cpu_ms += row.born_cpu_ms;
    } else if (names->count == BP_SUMMARY_NAME_MAX) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "its threads have more than %d names",
                       BP_SUMMARY_NAME_MAX);
    } else {
        names->rows[names->count++] = row;
        *slot = (uint32_t)names->count;
    }
    return BUGPACK_OK;
}

void bp_summary_sort_names(bp_summary_names *names, double window_ms) {
    for (size_t i = 0; i < names->count && window_ms > 0; i++) {
        names->rows[i].cpu_percent += names->rows[i].born_cpu_ms / window_ms * 100;
    }
    if (names->count > 0) {
        qsort(names->rows, names->count, sizeof *names->rows, compare_cpu);
    }
    free(names->slots);
    names->slots = NULL;
    names->slot_count = 0;
}

void bp_summary_release_names(bp_summary_names *names) {
    free(names->rows);
    free(names->slots);
    *names = (bp_summary_names){.count = 0};
}

static int compare_texts(const void *one, const void *other) {
    return strcmp(one, other);
}

/* A circle begins anywhere: sorted, the same one has the same names in every report. */
static void sort_deadlocked(bp_summary *summary) {
    qsort(summary->deadlocked, summary->deadlocked_count, sizeof summary->deadlocked[0],
          compare_texts);
}

/*
 * Whether it is known for whom a thread waits, or that it waits for no lock. The kernel does not
 * know who is to end the wait on a futex that is no pthread mutex: a monitor of Java, a lock of
 * Python, a goroutine's thread, a condition.
 */
static bool waits_openly(const bp_thread *thread) {
    static const char *const locks[] = {"futex", "flock", "fcntl", "semop", "semtimedop"};
    bool is_open = thread->syscall[0] != '\0';
    for (size_t i = 0; is_open && i < sizeof locks / sizeof locks[0]; i++) {
        is_open = strncmp(thread->syscall, locks[i], strlen(locks[i])) != 0;
    }
    return is_open || strcmp(thread->state, "running") == 0 || thread->waits_for_tid != 0;
}

static void name_deadlocked(bp_summary *summary) {
    const bp_rows *deadlocks = &summary->evidence.deadlocks;
    for (size_t i = 0; i < deadlocks->count; i++) {
        const bp_json_tree *item =
            bp_json_tree_first(bp_json_tree_array(deadlocks->rows[i], "tids"));
        for (; item != NULL && summary->deadlocked_count < BP_SUMMARY_DEADLOCKED_MAX;
             item = bp_json_tree_next(item)) {
            uint64_t tid;
            const bp_thread *thread = bp_json_tree_value_uint(item, &tid)
                                          ? bp_evidence_thread(&summary->evidence, tid)
                                          : NULL;
            if (thread != NULL && thread->name[0] != '\0') {
                bp_utf8_copy(summary->deadlocked[summary->deadlocked_count++],
                             sizeof summary->deadlocked[0], thread->name);
            }
        }
    }
    sort_deadlocked(summary);
}

/* Whether the manifest says nothing else of threads.json: of one without a manifest, too. */
static bool is_whole(const bp_summary *summary) {
    bp_report_line line;
    char path[128];
    (void)snprintf(path, sizeof path, "%sthreads.json", summary->folder);
    return !bp_report_file_line(summary->report, path, &line) || strcmp(line.status, "ok") == 0;
}

void bp_summary_end_threads(bp_summary *summary) {
    const bp_evidence *evidence = &summary->evidence;
    size_t clear_count = 0, unclear_count = 0;
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (thread->is_listed && !bp_thread_has_ended(thread)) {
            clear_count += waits_openly(thread);
            unclear_count += !waits_openly(thread);
        }
    }
    summary->has_deadlock = evidence->deadlocks.total_count > 0;
    /* Those of descendants are not looked at. */
    summary->has_no_deadlock = evidence->waits != NULL && !summary->has_deadlock &&
                               is_whole(summary) && clear_count > 0 && unclear_count == 0 &&
                               bp_json_tree_array(evidence->waits, "descendants") == NULL;
    name_deadlocked(summary);
}

void bp_summary_join_deadlocked(bp_summary *summary, const bp_summary *of_process) {
    summary->has_no_deadlock &= of_process->has_no_deadlock;
    summary->has_deadlock |= of_process->has_deadlock;
    for (size_t i = 0;
         i < of_process->deadlocked_count && summary->deadlocked_count < BP_SUMMARY_DEADLOCKED_MAX;
         i++) {
        memcpy(summary->deadlocked[summary->deadlocked_count++], of_process->deadlocked[i],
               sizeof summary->deadlocked[0]);
    }
    sort_deadlocked(summary);
}

/* --- of the machine ----------------------------------------------------------------------- */

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
static bugpack_status take_summary(void *context, bp_json_tree *row, bugpack_error *error) {
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
static bugpack_status take_thread(void *context, bp_json_tree *row, bugpack_error *error) {
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
