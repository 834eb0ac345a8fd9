#include "support/host_samples.h"

#include <stdio.h>
#include <string.h>

static void fill_thread(bp_host_thread *thread) {
    *thread = (bp_host_thread){.tgid = 4711,
                               .tid = 4711,
                               .process_name = "net)\n\xff",
                               .name = "net)\n\xff",
                               .cgroup = "/user.slice",
                               .has_start = true,
                               .start_ticks = UINT64_MAX,
                               .state = 'S',
                               .priority = -100,
                               .policy = 9,
                               .has_affinity = true,
                               .measured = (1u << BP_HOST_GROUP_COUNT) - 1};
    thread->affinity.bits[0] = 0x10f;
    for (size_t i = 0; i < BP_HOST_COUNTER_COUNT; i++) {
        thread->counters[i] = 9007199254740993 + i;
    }
}

bugpack_status sample_host_print(bool is_full, bp_buffer *out, bugpack_error *error) {
    char path[] = "/user.slice";
    bp_host_summary summary = {.ticks_per_sec = 100};
    bp_pressure pressure[BP_PRESSURE_COUNT];
    bp_host_cgroup cgroup = {.path = path, .thread_count = 1};
    bp_host_thread thread = {.tgid = 1, .tid = 2};
    memset(pressure, 0, sizeof pressure);
    if (is_full) {
        summary.self_tgid = 4711;
        summary.captured_wall_ns = 1795221411123456789;
        summary.unread[BP_HOST_IO][BP_HOST_CAUSE_DENIED] = 3;
        summary.heap_processes[BP_HEAP_FAILURE_MAPS_READ] = 1;
        (void)snprintf(summary.heap_reasons[BP_HEAP_FAILURE_MAPS_READ],
                       sizeof summary.heap_reasons[0], "a sentence");
        for (size_t i = 0; i < BP_CGROUP_FIGURE_COUNT; i++) {
            cgroup.figures[i] = (bp_host_figure){.is_known = true, .value = i};
        }
        cgroup.figures[BP_CGROUP_MEMORY_MAX].is_unlimited = true;
        for (size_t i = 0; i < BP_PRESSURE_COUNT; i++) {
            pressure[i].some = (bp_pressure_line){true, 99, 10000, 0, UINT64_MAX};
            pressure[i].full = pressure[i].some;
            cgroup.pressure[i] = pressure[i];
        }
        fill_thread(&thread);
    }
    bugpack_status status =
        bp_host_print_header(&summary, &cgroup, is_full ? 1 : 0, pressure, out, error);
    if (status == BUGPACK_OK) {
        bp_buffer element;
        bp_buffer_init(&element, (size_t)1 << 20);
        bp_host_print_thread(&thread, &element);
        (void)bp_buffer_append_text(out, bp_buffer_text(&element) + 1);
        bp_buffer_release(&element);
        status = bp_buffer_append_text(out, bp_host_tail);
    }
    return status;
}
