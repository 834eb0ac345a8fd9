/*
 * host-threads.json from values.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "support/host_samples.h"
#include "json/json.h"

Test(host_threads, is_laid_out_like_all_json) {
    for (int is_full = 0; is_full < 2; is_full++) {
        bp_buffer text, again;
        bugpack_error error = BUGPACK_ERROR_INIT;
        bp_buffer_init(&text, (size_t)1 << 20);
        bp_buffer_init(&again, (size_t)1 << 20);
        cr_assert(eq(int, sample_host_print(is_full != 0, &text, &error), BUGPACK_OK));
        cr_assert(eq(int, bp_json_reformat(text.data, text.size, &again, &error), BUGPACK_OK), "%s",
                  error.message);
        cr_expect(eq(str, text.data, again.data));
        bp_buffer_release(&text);
        bp_buffer_release(&again);
    }
}

Test(host_threads, gives_integers_to_the_last_digit_and_names_to_the_last_byte) {
    bp_buffer text;
    bp_buffer_init(&text, (size_t)1 << 20);
    cr_assert(eq(int, sample_host_print(true, &text, NULL), BUGPACK_OK));
    cr_expect(strstr(text.data, "\"user_cpu_ns\": 9007199254740993,") != NULL);
    cr_expect(strstr(text.data, "\"start_ticks\": 18446744073709551615,") != NULL);
    cr_expect(strstr(text.data, "\"name\": \"net)\\n\xee\xbf\xbf\"") != NULL);
    cr_expect(strstr(text.data, "\"policy\": \"9\"") != NULL);
    cr_expect(strstr(text.data, "\"affinity\": \"0-3,8\"") != NULL);
    bp_buffer_release(&text);
}

Test(host_threads, gives_the_memory_of_a_process_with_its_first_thread_only) {
    bp_host_thread thread = {.tgid = 7, .tid = 7};
    bp_buffer text;
    bp_buffer_init(&text, (size_t)1 << 20);
    bp_host_print_thread(&thread, &text);
    cr_expect(strstr(text.data, "\"smaps_rollup_measured\": false") != NULL);
    bp_buffer_clear(&text);
    thread.tid = 8;
    bp_host_print_thread(&thread, &text);
    cr_expect(strstr(text.data, "smaps_rollup") == NULL);
    cr_expect(strstr(text.data, "\"heap_measured\": false") != NULL);
    bp_buffer_release(&text);
}

Test(host_dominant, names_what_failed_before_what_the_kernel_does_not_count) {
    bp_host_summary summary = {.ticks_per_sec = 100};
    bp_host_dominant dominant;
    bp_host_find_dominant(&summary, &dominant);
    cr_expect(eq(u64, dominant.count, 0));
    summary.unread[BP_HOST_WAITS][BP_HOST_CAUSE_DISABLED] = 1000;
    bp_host_find_dominant(&summary, &dominant);
    cr_expect(eq(str, (char *)dominant.cause, "disabled"));
    cr_expect(strstr(dominant.advice, "sched_schedstats") != NULL);
    summary.unread[BP_HOST_IO][BP_HOST_CAUSE_DENIED] = 3;
    bp_host_find_dominant(&summary, &dominant);
    cr_expect(eq(str, (char *)dominant.group, "io"));
    cr_expect(eq(u64, dominant.count, 3));
    summary.heap_processes[BP_HEAP_FAILURE_NONE] = 100;
    summary.heap_processes[BP_HEAP_FAILURE_VM_READV] = 4;
    bp_host_find_dominant(&summary, &dominant);
    cr_expect(eq(str, (char *)dominant.group, "heap"));
    cr_expect(
        eq(str, (char *)dominant.cause, (char *)bp_heap_failure_name(BP_HEAP_FAILURE_VM_READV)));
}
