#include "facts/thread_facts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "base/utf8.h"
#include "model/fields.h"

/* --- names -------------------------------------------------------------------------------- */

static int compare_texts(const void *one, const void *other) {
    return strcmp(one, other);
}

/* Busiest first; then by name, so that equal reports have equal lines. */
static int compare_cpu(const void *one, const void *other) {
    const bp_threads_of_name *first = one, *second = other;
    return first->cpu_percent != second->cpu_percent
               ? (first->cpu_percent < second->cpu_percent) -
                     (first->cpu_percent > second->cpu_percent)
               : strcmp(first->name, second->name);
}

bool bp_thread_names_list(bp_thread_names *names, const bp_evidence *evidence) {
    bp_threads_of_name *rows = calloc(evidence->thread_count + 1, sizeof *rows);
    size_t thread_count = 0, count = 0;
    if (rows == NULL) {
        return false;
    }
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        if (thread->cpu_percent >= 0 && !thread->is_own) {
            bp_threads_of_name *row = &rows[thread_count++];
            *row = (bp_threads_of_name){.count = 1, .cpu_percent = thread->cpu_percent};
            memcpy(row->name, thread->name, sizeof row->name);
        }
    }
    qsort(rows, thread_count, sizeof *rows, compare_texts);
    for (size_t i = 0; i < thread_count; i++) {
        if (count > 0 && strcmp(rows[count - 1].name, rows[i].name) == 0) {
            rows[count - 1].count++;
            rows[count - 1].cpu_percent += rows[i].cpu_percent;
        } else {
            rows[count++] = rows[i];
        }
    }
    qsort(rows, count, sizeof *rows, compare_cpu);
    *names = (bp_thread_names){rows, count};
    return true;
}

/* --- deadlocks ---------------------------------------------------------------------------- */

/*
 * True if it is known for whom a thread waits, or that it waits for no lock. The kernel does not
 * know who is to end the wait on a futex that is no pthread mutex: a monitor of Java, a lock of
 * Python, a goroutine's thread, a condition.
 */
static bool waits_openly(const bp_thread *thread) {
    static const char *const locks[] = {"futex", "flock", "fcntl", "semop", "semtimedop", NULL};
    bool is_open = thread->syscall[0] != '\0' && !bp_array_has_start(locks, thread->syscall);
    return is_open || strcmp(thread->state, "running") == 0 || thread->waits_for_tid != 0;
}

/* True if no thread can be in an unseen deadlock. Threads of descendants are not looked at. */
static bool is_clear(const bp_evidence *evidence) {
    bool has_any = false;
    char path[128];
    for (size_t i = 0; i < evidence->thread_count; i++) {
        const bp_thread *thread = &evidence->threads[i];
        bool is_living = thread->is_listed && !bp_thread_has_ended(thread);
        if (is_living && !waits_openly(thread)) {
            return false;
        }
        has_any |= is_living;
    }
    (void)snprintf(path, sizeof path, "%sthreads.json", evidence->folder);
    const bp_json_tree *line = bp_report_file_line(evidence->report, path);
    const char *status = bp_json_tree_text_or(line, "status", line == NULL ? "ok" : "");
    return has_any && evidence->waits != NULL && strcmp(status, "ok") == 0 &&
           bp_json_tree_array(evidence->waits, "descendants") == NULL;
}

void bp_deadlocks_add(bp_deadlocks *deadlocks, const bp_evidence *evidence) {
    deadlocks->is_any |= evidence->deadlocks.total_count > 0;
    deadlocks->is_unclear |= !is_clear(evidence);
    for (size_t i = 0; i < evidence->deadlocks.count; i++) {
        const bp_json_tree *item = bp_json_tree_rows(evidence->deadlocks.rows[i], "tids");
        for (; item != NULL && deadlocks->name_count < BP_DEADLOCKED_MAX;
             item = bp_json_tree_next(item)) {
            uint64_t tid;
            const bp_thread *thread =
                bp_json_tree_value_uint(item, &tid) ? bp_evidence_thread(evidence, tid) : NULL;
            if (thread != NULL && thread->name[0] != '\0') {
                memcpy(deadlocks->names[deadlocks->name_count++], thread->name,
                       sizeof thread->name);
            }
        }
    }
}

void bp_make_deadlocks(bp_json_maker *maker, bp_deadlocks *deadlocks) {
    qsort(deadlocks->names, deadlocks->name_count, sizeof deadlocks->names[0], compare_texts);
    if (deadlocks->is_any || !deadlocks->is_unclear) {
        bp_json_make_bool(maker, "deadlock", deadlocks->is_any);
    }
    if (deadlocks->name_count > 0) {
        bp_json_make_array(maker, "deadlocked_threads");
        for (size_t i = 0; i < deadlocks->name_count; i++) {
            bp_json_make_text(maker, NULL, deadlocks->names[i]);
        }
        bp_json_make_end(maker);
    }
}

/* --- the machine -------------------------------------------------------------------------- */

enum { task_max = 10 };

/* A thread, or a process: then with the sums of its threads that were there. */
typedef struct machine_task {
    uint64_t pid, tid;
    char name[64], process[64];
    char state[8]; /* of a thread, as in host-threads.json: "R"; "" if unknown */
    bool is_kernel_thread;
    bool has_cpu, has_percent, has_rss, is_without_memory;
    uint64_t cpu_ns; /* since it began */
    /* Of one CPU: over the window, or, in a capture without one, since it began, and then of none
     * younger than 0.1 s. */
    double cpu_percent;
    bool is_born;           /* in the window */
    double children_cpu_ms; /* of a process, in the window: of ended children; 0: not known */
    uint64_t rss_kb;
    uint64_t thread_count, running_count;
} machine_task;

/* The first of some order. */
typedef struct machine_list {
    machine_task rows[task_max];
    size_t count;
} machine_list;

struct bp_machine {
    double window_ms; /* 0: there is none */
    uint64_t collector_pid;
    bool has_collector; /* it was among the processes */
    double collector_percent;
    char captured_at[40];
    /* Counted, except the last, which nobody could look at. */
    uint64_t process_count, thread_count, kernel_thread_count, running_count, blocked_count;
    uint64_t no_rss_count; /* processes that should have one */
    uint64_t denied_process_count;
    machine_list busiest, largest, threads;
    /* While it is read. */
    double end_secs, ticks_per_sec; /* since boot; 0: not known */
    machine_task process;
    double process_age_secs; /* at the end of the capture; negative if unknown */
};

bp_machine *bp_machine_new(uint64_t collector_pid) {
    bp_machine *machine = calloc(1, sizeof *machine);
    if (machine != NULL) {
        machine->collector_pid = collector_pid;
    }
    return machine;
}

/* Busiest first; what has no percent behind what has one. */
static bool is_busier(const machine_task *one, const machine_task *other) {
    if (one->has_percent != other->has_percent) {
        return one->has_percent;
    }
    return one->has_percent && one->cpu_percent != other->cpu_percent
               ? one->cpu_percent > other->cpu_percent
               : one->cpu_ns > other->cpu_ns;
}

static bool is_larger(const machine_task *one, const machine_task *other) {
    return one->rss_kb > other->rss_kb;
}

static void keep(machine_list *list, const machine_task *task,
                 bool (*is_before)(const machine_task *one, const machine_task *other)) {
    size_t at = list->count;
    while (at > 0 && is_before(task, &list->rows[at - 1])) {
        at--;
    }
    if (at < task_max) {
        list->count += list->count < task_max;
        memmove(&list->rows[at + 1], &list->rows[at], (list->count - at - 1) * sizeof *task);
        list->rows[at] = *task;
    }
}

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

/* The scheduler's time is exact; that of stat is counted in ticks. */
static void read_cpu(machine_task *task, const bp_json_tree *row) {
    const bp_json_tree *stat = bp_json_tree_object(row, "stat");
    uint64_t user_ns, system_ns;
    task->has_cpu =
        bp_json_tree_uint(bp_json_tree_object(row, "schedstat"), "run_ns", &task->cpu_ns);
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

static void compute_percent(machine_task *task, double age_secs) {
    task->has_percent = task->has_cpu && age_secs >= age_min_secs;
    task->cpu_percent = task->has_percent ? (double)task->cpu_ns / 1e7 / age_secs : 0;
}

/* The use of a thread or process over the window. One that began after it has none. */
static void read_use(machine_task *task, const bp_json_tree *use) {
    task->has_percent = bp_json_tree_number(use, "cpu_percent", &task->cpu_percent);
    (void)bp_json_tree_number(use, "children_cpu_ms", &task->children_cpu_ms);
}

static bool has_used(const bp_machine *machine, const machine_task *task) {
    return machine->window_ms > 0 ? task->cpu_percent > 0 || task->children_cpu_ms > 0
                                  : task->has_cpu && task->cpu_ns > 0;
}

static void end_process(bp_machine *machine) {
    machine_task *process = &machine->process;
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
    machine->no_rss_count += !process->has_rss && !process->is_without_memory;
}

static void add_to_process(bp_machine *machine, const machine_task *thread, const bp_json_tree *row,
                           double age_secs) {
    machine_task *process = &machine->process;
    process->thread_count++;
    process->running_count += strcmp(thread->state, "R") == 0;
    process->has_cpu = process->has_cpu && thread->has_cpu;
    process->cpu_ns += thread->cpu_ns;
    if (thread->tid == thread->pid) {
        const bp_json_tree *window = bp_json_tree_object(row, "window");
        machine->process_age_secs = age_secs;
        process->is_born = thread->is_born;
        read_use(process, bp_json_tree_object(window, "process"));
        process->has_rss = bp_json_tree_uint(bp_json_tree_object(row, "smaps_rollup"), "rss_kb",
                                             &process->rss_kb) ||
                           bp_json_tree_uint(row, "rss_kb", &process->rss_kb);
        /* One that exits has given up its memory before it is a zombie: then its status has none
         * (proc_pid_status in fs/proc/array.c). */
        process->is_without_memory = thread->is_kernel_thread || strcmp(thread->state, "Z") == 0 ||
                                     bp_json_tree_is_true(row, "status_measured");
    }
}

/* A bp_json_tree_taker. The threads of a process follow each other. */
static bugpack_status take_thread(void *context, bp_json_tree *row, bugpack_error *error) {
    bp_machine *machine = context;
    machine_task thread = {.is_kernel_thread = bp_json_tree_is_true(row, "kernel_thread")};
    if (!bp_json_tree_uint(row, "tgid", &thread.pid) ||
        !bp_json_tree_uint(row, "tid", &thread.tid)) {
        return bp_fail(error, BUGPACK_ERR_CORRUPT, "a thread of it has no tgid or no tid");
    }
    bp_utf8_copy(thread.process, sizeof thread.process, bp_json_tree_text(row, "process"));
    bp_utf8_copy(thread.name, sizeof thread.name, bp_json_tree_text(row, "name"));
    bp_utf8_copy(thread.state, sizeof thread.state,
                 bp_json_tree_text(bp_json_tree_object(row, "scheduling"), "state"));
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
        machine->process = (machine_task){.pid = thread.pid, .has_cpu = true};
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

bugpack_status bp_machine_end(bp_machine *machine, bugpack_error *error) {
    end_process(machine);
    return machine->thread_count > 0
               ? BUGPACK_OK
               : bp_fail(error, BUGPACK_ERR_CORRUPT, "there are no threads in it");
}

/* --- the machine in the document ---------------------------------------------------------- */

/* "running", …; the letter itself if it has no word, "?" if there is none. */
static const char *state_name(const machine_task *thread) {
    bool is_letter = thread->state[0] != '\0' && thread->state[1] == '\0';
    const char *word = is_letter ? bp_model_state_word(thread->state[0]) : NULL;
    if (word != NULL) {
        return word;
    }
    return thread->state[0] != '\0' ? thread->state : "?";
}

static void make_tasks(bp_json_maker *maker, const char *key, const machine_list *list,
                       bool is_process, bool is_for_screen) {
    bp_json_make_array(maker, key);
    for (size_t i = 0; i < list->count; i++) {
        const machine_task *task = &list->rows[i];
        bp_json_make_object(maker, NULL);
        bp_json_make_uint(maker, "pid", true, task->pid);
        bp_json_make_uint(maker, "tid", !is_process, task->tid);
        bp_json_make_known_text(maker, "process", is_process ? "" : task->process);
        bp_json_make_known_text(maker, "name", task->name);
        bp_json_make_number(maker, "cpu_percent", task->has_percent, task->cpu_percent, 2);
        bp_json_make_flag(maker, "born_in_window", task->is_born);
        bp_json_make_number(maker, "children_cpu_ms", task->children_cpu_ms > 0,
                            task->children_cpu_ms, 3);
        bp_json_make_uint(maker, "cpu_ns", task->has_cpu, task->cpu_ns);
        bp_json_make_known_text(maker, "state", is_process ? "" : state_name(task));
        bp_json_make_uint(maker, "thread_count", is_process, task->thread_count);
        bp_json_make_uint(maker, "running_threads", is_process, task->running_count);
        bp_json_make_uint(maker, "rss_kb", task->has_rss, task->rss_kb);
        if (!task->has_rss && is_for_screen) {
            bp_json_make_text(maker, "no_rss", task->is_without_memory ? "-" : "?");
        }
        bp_json_make_end(maker);
    }
    bp_json_make_end(maker);
}

static void make_system(bp_json_maker *maker, const bp_json_tree *system) {
    static const char *const averages[] = {"avg1", "avg5", "avg15"};
    const bp_json_tree *load = bp_json_tree_object(system, "load");
    const bp_json_tree *memory = bp_json_tree_object(system, "memory");
    double loads[3] = {0};
    uint64_t cpu_count = bp_json_tree_uint_or(bp_json_tree_object(system, "cpus"), "online", 0);
    uint64_t total_kb = 0, available_kb = 0;
    bool has_load = true;
    for (size_t i = 0; i < 3; i++) {
        has_load &= bp_json_tree_number(load, averages[i], &loads[i]);
    }
    bp_json_make_object(maker, "load");
    for (size_t i = 0; i < 3; i++) {
        bp_json_make_number(maker, averages[i], has_load, loads[i], 2);
    }
    bp_json_make_end(maker);
    bool has_memory = bp_json_tree_uint(memory, "total_kb", &total_kb) &&
                      bp_json_tree_uint(memory, "available_kb", &available_kb);
    bp_json_make_uint(maker, "cpus", cpu_count > 0, cpu_count);
    bp_json_make_uint(maker, "memory_total_kb", has_memory, total_kb);
    bp_json_make_uint(maker, "memory_available_kb", has_memory, available_kb);
}

static void make_pressure(bp_json_maker *maker, const bp_json_tree *system) {
    static const char *const kinds[] = {"cpu", "memory", "io"};
    const bp_json_tree *pressure = bp_json_tree_object(system, "pressure");
    bp_json_make_object(maker, "pressure_avg10_percent");
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const bp_json_tree *kind = bp_json_tree_object(pressure, kinds[i]);
        double percent = 0;
        bool is_known =
            bp_json_tree_number(bp_json_tree_object(kind, "some"), "avg10_percent", &percent);
        bp_json_make_number(maker, kinds[i], is_known, percent, 2);
    }
    bp_json_make_end(maker);
}

void bp_make_machine(bp_json_maker *maker, const char *key, const bp_machine *machine,
                     const bp_json_tree *system, bool is_for_screen) {
    bp_json_make_object(maker, key);
    bp_json_make_known_text(maker, "captured_at", machine->captured_at);
    bp_json_make_uint(maker, "processes", true, machine->process_count);
    bp_json_make_uint(maker, "denied_processes", true, machine->denied_process_count);
    bp_json_make_uint(maker, "threads", true, machine->thread_count);
    bp_json_make_uint(maker, "kernel_threads", true, machine->kernel_thread_count);
    bp_json_make_uint(maker, "running_threads", true, machine->running_count);
    bp_json_make_uint(maker, "blocked_threads", true, machine->blocked_count);
    make_system(maker, system);
    make_pressure(maker, system);
    bp_json_make_number(maker, "window_ms", machine->window_ms > 0, machine->window_ms, 3);
    bp_json_make_number(maker, "collector_cpu_percent", machine->has_collector,
                        machine->collector_percent, 2);
    make_tasks(maker, "busiest_processes", &machine->busiest, true, is_for_screen);
    make_tasks(maker, "largest_processes", &machine->largest, true, is_for_screen);
    bp_json_make_uint(maker, "unknown_rss_processes", true, machine->no_rss_count);
    make_tasks(maker, "busiest_threads", &machine->threads, false, is_for_screen);
    bp_json_make_end(maker);
}
