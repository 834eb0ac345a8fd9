#include "cli/show_machine.h"

#include <inttypes.h>
#include <stdio.h>

#include "cli/output.h"
#include "cli/screen.h"

static void print_state(const bp_machine *machine) {
    char bytes[2][16], pressure[BP_MACHINE_PRESSURES][24], cpus[32] = "";
    bp_screen_heading("Machine  [host-threads.json]");
    if (machine->captured_at[0] != '\0') {
        bp_screen_print(BP_SCREEN_PLAIN, "captured   %s", machine->captured_at);
    }
    bp_screen_print(BP_SCREEN_PLAIN,
                    "threads    %" PRIu64 " of %" PRIu64 " processes, %" PRIu64
                    " of them of the kernel; %" PRIu64 " running or ready to, %" PRIu64 " blocked",
                    machine->thread_count, machine->process_count, machine->kernel_thread_count,
                    machine->running_count, machine->blocked_count);
    if (machine->denied_process_count > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "refused    %" PRIu64 " more processes",
                        machine->denied_process_count);
    }
    if (machine->cpu_count > 0) {
        (void)snprintf(cpus, sizeof cpus, "; %" PRIu64 " CPU%s", machine->cpu_count,
                       machine->cpu_count == 1 ? "" : "s");
    }
    if (machine->has_load) {
        bp_screen_print(BP_SCREEN_PLAIN,
                        "load       %.2f over 1 min, %.2f over 5 min, %.2f over 15 min%s"
                        "  [system.json]",
                        machine->load[0], machine->load[1], machine->load[2], cpus);
    }
    if (machine->has_memory) {
        bp_screen_print(BP_SCREEN_PLAIN, "memory     %s of %s available  [system.json]",
                        bp_cli_format_bytes(machine->available_kb << 10, bytes[0]),
                        bp_cli_format_bytes(machine->total_kb << 10, bytes[1]));
    }
    bool has_any = false;
    for (size_t i = 0; i < BP_MACHINE_PRESSURES; i++) {
        (void)snprintf(pressure[i], sizeof pressure[i], "?");
        if (machine->has_pressure[i]) {
            (void)snprintf(pressure[i], sizeof pressure[i], "%.1f %%",
                           machine->pressure_percent[i]);
        }
        has_any |= machine->has_pressure[i];
    }
    if (has_any) {
        bp_screen_print(BP_SCREEN_PLAIN,
                        "waiting    for CPUs %s, for memory %s, for I/O %s of the last 10 s"
                        "  [system.json]",
                        pressure[0], pressure[1], pressure[2]);
    }
}

static void print_task(const bp_machine_task *task, bool is_process) {
    char cpu[24] = "?", secs[24] = "?", rss[16], running[48] = "", children[64] = "";
    const char *born = task->is_born ? ", born in the window" : "";
    if (task->has_percent) {
        (void)snprintf(cpu, sizeof cpu, "%.1f", task->cpu_percent);
    }
    if (task->has_cpu) {
        (void)snprintf(secs, sizeof secs, "%.2f", (double)task->cpu_ns / 1e9);
    }
    if (!is_process) {
        bp_screen_print(BP_SCREEN_PLAIN,
                        "%6s %%  %10s s  %7" PRIu64 " %-16s %s, of %" PRIu64 " %s%s", cpu, secs,
                        task->tid, task->name, bp_machine_state_name(task), task->pid,
                        task->process, born);
        return;
    }
    if (task->running_count > 0) {
        (void)snprintf(running, sizeof running, ", %" PRIu64 " running", task->running_count);
    }
    if (task->children_cpu_ms > 0) {
        (void)snprintf(children, sizeof children, ", ended children used %.0f ms",
                       task->children_cpu_ms);
    }
    const char *none = task->is_kernel_thread ? "-" : "?";
    bp_screen_print(BP_SCREEN_PLAIN,
                    "%6s %%  %10s s  %9s  %7" PRIu64 " %-16s %" PRIu64 " thread%s%s%s%s", cpu, secs,
                    task->has_rss ? bp_cli_format_bytes(task->rss_kb << 10, rss) : none, task->pid,
                    task->name, task->thread_count, task->thread_count == 1 ? "" : "s", running,
                    born, children);
}

/* `by` ends the title. */
static void print_tasks(const char *title, const char *by, const bp_machine_list *list,
                        bool is_process) {
    char heading[96];
    (void)snprintf(heading, sizeof heading, "%s %s  [host-threads.json]", title, by);
    if (list->count > 0) {
        bp_screen_heading(heading);
    }
    for (size_t i = 0; i < list->count; i++) {
        print_task(&list->rows[i], is_process);
    }
}

void bp_cli_show_machine(const bp_machine *machine) {
    if (!machine->is_there) {
        return;
    }
    print_state(machine);
    char by_cpu[48];
    bp_machine_name_period(machine, by_cpu, sizeof by_cpu);
    print_tasks("Processes by CPU", by_cpu, &machine->busiest, true);
    if (machine->has_collector) {
        bp_screen_print(BP_SCREEN_PLAIN, "bugpack itself is left out: %.1f %%",
                        machine->collector_percent);
    }
    print_tasks("Processes by", "resident memory", &machine->largest, true);
    if (machine->no_rss_count > 0) {
        bp_screen_print(BP_SCREEN_PLAIN, "and %" PRIu64 " whose memory is not known",
                        machine->no_rss_count);
    }
    print_tasks("Threads by CPU", by_cpu, &machine->threads, false);
}
