#include "support/machine_samples.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void fill_thread(bp_machine_thread *thread) {
    static bp_cpu_list affinity = {.bits = {0x10f}};
    *thread = (bp_machine_thread){.tgid = 4711,
                                  .process_name = "net)\n\xff",
                                  .cgroup = "/user.slice",
                                  .read = {.tid = 4711,
                                           .measured = (1u << BP_GROUP_COUNT) - 1,
                                           .stat = {.name = "net)\n\xff",
                                                    .start_ticks = UINT64_MAX,
                                                    .state = 'S',
                                                    .priority = -100,
                                                    .policy = 9},
                                           .affinity = &affinity}};
    for (size_t i = 0; i < BP_COUNTER_COUNT; i++) {
        thread->read.counters[i] = 9007199254740993 + i;
    }
}

bugpack_status sample_host_print(bool is_full, bp_buffer *out, bugpack_error *error) {
    char path[] = "/user.slice";
    bp_machine_summary summary = {.ticks_per_sec = 100, .captured_wall_ns = 1795221411123456789};
    bp_machine_cgroup cgroup = {.path = path, .thread_count = 1};
    char command_line[] = "net\0--listen\0\xff";
    bp_machine_process process = {.tgid = 1, .threads = {.count = 1}};
    bp_machine_header header = {
        .summary = &summary, .processes = &process, .process_count = 1, .cgroups = &cgroup};
    bp_machine_thread thread = {.tgid = 1, .read = {.tid = 2}};
    if (is_full) {
        summary.self_tgid = 4711;
        summary.boottime_ns = 5000000000;
        summary.is_heap_probed = true;
        *bp_machine_summary_error(&summary, EMFILE) = (bp_machine_error){EMFILE, 1, 2, 3};
        summary.unread[BP_GROUP_IO][BP_MACHINE_CAUSE_DENIED] = 3;
        summary.heap_processes[BP_HEAP_FAILURE_MAPS_READ] = 1;
        (void)snprintf(summary.heap_reasons[BP_HEAP_FAILURE_MAPS_READ],
                       sizeof summary.heap_reasons[0], "a sentence");
        for (size_t i = 0; i < BP_CGROUP_FIGURE_COUNT; i++) {
            cgroup.figures[i] = (bp_machine_figure){.is_known = true, .value = i};
        }
        cgroup.figures[BP_CGROUP_MEMORY_MAX].is_unlimited = true;
        for (size_t i = 0; i < BP_PRESSURE_COUNT; i++) {
            header.pressure[i].some = (bp_pressure_line){true, 99, 10000, 0, UINT64_MAX};
            header.pressure[i].full = header.pressure[i].some;
            cgroup.pressure[i] = header.pressure[i];
        }
        header.cgroup_count = 1;
        process = (bp_machine_process){.tgid = 4711,
                                       .name = "net)\n\xff",
                                       .command_line = command_line,
                                       .command_line_bytes = sizeof command_line - 1,
                                       .is_command_line_cut = true,
                                       .threads = {.count = 1},
                                       .is_heap_measured = true};
        fill_thread(&thread);
    } else {
        process.heap_failure = BP_HEAP_FAILURE_MAPS_READ;
        thread.heap_failure = bp_heap_failure_name(BP_HEAP_FAILURE_MAPS_READ);
    }
    bugpack_status status = bp_machine_print_header(&header, out, error);
    if (status == BUGPACK_OK) {
        bp_buffer element;
        bp_buffer_init(&element, (size_t)1 << 20);
        bp_machine_print_thread(&thread, &element);
        (void)bp_buffer_append_text(out, bp_buffer_text(&element) + 1);
        bp_buffer_release(&element);
        status = bp_buffer_append_text(out, bp_machine_tail);
    }
    return status;
}
