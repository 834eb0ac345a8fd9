/*
 * host-threads.json from values.
 */
#include <errno.h>

#include "json/json.h"
#include "support/machine_samples.h"
#include "unit/unit.h"

Test(host_threads, gives_integers_to_the_last_digit_and_names_to_the_last_byte) {
    BUFFER(text, (size_t)1 << 20);
    cr_assert(eq(int, sample_host_print(true, &text, NULL), BUGPACK_OK));
    cr_expect(strstr(text.data, "\"user_cpu_ns\": 9007199254740993,") != NULL);
    cr_expect(strstr(text.data, "\"start_ticks\": 18446744073709551615,") != NULL);
    cr_expect(strstr(text.data, "\"name\": \"net)\\n\xee\xbf\xbf\"") != NULL);
    cr_expect(strstr(text.data, "\"policy\": \"9\"") != NULL);
    cr_expect(strstr(text.data, "\"affinity\": \"0-3,8\"") != NULL);
}

Test(host_threads, gives_the_memory_of_a_process_with_its_first_thread_only) {
    bp_machine_thread thread = {.tgid = 7, .read = {.tid = 7}};
    BUFFER(text, (size_t)1 << 20);
    bp_machine_print_thread(&thread, &text);
    cr_expect(strstr(text.data, "\"smaps_rollup_measured\": false") != NULL);
    bp_buffer_clear(&text);
    thread.read.tid = 8;
    bp_machine_print_thread(&thread, &text);
    cr_expect(strstr(text.data, "smaps_rollup") == NULL);
    cr_expect(strstr(text.data, "\"heap_measured\": false") != NULL);
}

Test(host_threads, leaves_out_what_was_not_measured_and_says_why) {
    bp_machine_thread thread = {.tgid = 7, .read = {.tid = 7}, .heap_failure = "process-vm-readv"};
    BUFFER(text, (size_t)1 << 20);
    bp_machine_print_thread(&thread, &text);
    static const char *const names[] = {
#define NAME(constant, name) name,
        BP_THREAD_GROUPS(NAME)
#undef NAME
    };
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char key[32], flag[48];
        (void)snprintf(key, sizeof key, "\"%s\": ", names[i]);
        (void)snprintf(flag, sizeof flag, "\"%s_measured\": false", names[i]);
        cr_expect(strstr(text.data, key) == NULL, "there is %s", key);
        cr_expect(strstr(text.data, flag) != NULL, "there is no %s", flag);
    }
    cr_expect(strstr(text.data, "\"scheduling\"") == NULL);
    cr_expect(strstr(text.data, "\"heap_failure\": \"process-vm-readv\"") != NULL);
    bp_buffer_clear(&text);
    bp_cpu_list affinity = {.bits = {1}};
    thread.read.affinity = &affinity;
    thread.read.measured = 1u << BP_GROUP_AFFINITY;
    bp_machine_print_thread(&thread, &text);
    cr_expect(strstr(text.data, "\"scheduling\": {\n        \"affinity\": \"0\"\n      }") != NULL);
}

Test(host_threads, gives_processes_their_arguments) {
    BUFFER(text, (size_t)1 << 20);
    cr_assert(eq(int, sample_host_print(true, &text, NULL), BUGPACK_OK));
    cr_expect(strstr(text.data, "\"command_line\": [\n        \"net\",\n        \"--listen\",\n  "
                                "      \"\xee\xbf\xbf\"\n      ],\n      "
                                "\"command_line_cut\": true") != NULL);
}

Test(host_summary, is_complete_with_what_the_kernel_lacks_and_without_heaps) {
    bp_machine_summary summary = {.is_heap_probed = true};
    summary.vanished_process_count = summary.vanished_thread_count = 5;
    summary.unread[BP_GROUP_WAITS][BP_MACHINE_CAUSE_DISABLED] = 9;
    summary.unread[BP_GROUP_IO][BP_MACHINE_CAUSE_VANISHED] = 9;
    summary.unread[BP_GROUP_SCHED][BP_MACHINE_CAUSE_MISSING] = 9;
    summary.heap_processes[BP_HEAP_FAILURE_VM_READV] = 78;
    cr_expect(bp_machine_summary_is_complete(&summary));
    for (bp_machine_cause cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
        bp_machine_summary lossy = summary;
        bool is_loss = cause == BP_MACHINE_CAUSE_DENIED || cause == BP_MACHINE_CAUSE_MALFORMED ||
                       cause == BP_MACHINE_CAUSE_OTHER;
        lossy.unread[BP_GROUP_MEMORY][cause]++;
        cr_expect(eq(int, bp_machine_summary_is_complete(&lossy), !is_loss), "cause %d",
                  (int)cause);
        is_loss = is_loss && cause != BP_MACHINE_CAUSE_DENIED; /* which nobody could avoid */
        cr_expect(eq(int, bp_machine_summary_has_loss(&lossy), is_loss), "cause %d", (int)cause);
    }
    bp_machine_summary denied = summary, failed = summary, cut = summary, hidden = summary;
    hidden.is_hidden = true;
    cr_expect(not(bp_machine_summary_is_complete(&hidden)));
    denied.denied_process_count = 1;
    bp_machine_summary_error(&failed, EMFILE)->thread_count++;
    cut.is_cut = true;
    cr_expect(not(bp_machine_summary_is_complete(&denied)));
    cr_expect(not(bp_machine_summary_is_complete(&failed)));
    cr_expect(not(bp_machine_summary_is_complete(&cut)));
    cr_expect(not(bp_machine_summary_has_loss(&hidden) || bp_machine_summary_has_loss(&denied)));
    cr_expect(bp_machine_summary_has_loss(&failed) && bp_machine_summary_has_loss(&cut));
}

Test(host_summary, says_in_numbers_what_is_missing_and_what_to_do) {
    bp_machine_summary summary = {.thread_count = 208,
                                  .process_count = 141,
                                  .kernel_thread_count = 61,
                                  .is_heap_probed = true};
    char text[512];
    char short_text[20];
    summary.unread[BP_GROUP_IO][BP_MACHINE_CAUSE_DENIED] = 203;
    summary.unread[BP_GROUP_MEMORY][BP_MACHINE_CAUSE_DENIED] = 75;
    summary.heap_processes[BP_HEAP_FAILURE_READLINK] = 78;
    bp_machine_summary_explain(&summary, text, sizeof text);
    cr_expect(eq(str, text,
                 "io of 203 of 208 threads (denied), smaps_rollup of 75 of 80 user processes "
                 "(denied), heap of 78 processes (readlink-failure); these files are for root, or "
                 "for whoever has CAP_SYS_PTRACE"));
    summary.is_root = true;
    bp_machine_summary_explain(&summary, text, sizeof text);
    cr_expect(eq(ptr, strstr(text, "for root"), NULL), "%s", text);
    summary = (bp_machine_summary){.is_cut = true};
    *bp_machine_summary_error(&summary, EMFILE) = (bp_machine_error){EMFILE, 67, 0, 4};
    bp_machine_summary_explain(&summary, text, sizeof text);
    cr_expect(eq(str, text,
                 "it was ended before all threads were read; 67 processes, 4 other files: Too many "
                 "open files (a higher \"ulimit -n\" helps)"));
    summary = (bp_machine_summary){.denied_process_count = 1};
    *bp_machine_summary_error(&summary, EIO) = (bp_machine_error){EIO, 1, 1, 1};
    summary.heap_processes[BP_HEAP_FAILURE_READLINK] = 1;
    bp_machine_summary_explain(&summary, text, sizeof text);
    cr_expect(eq(str, text,
                 "1 process, 1 thread, 1 other file: Input/output error; 1 process (denied), "
                 "heap of 1 process (readlink-failure); these files are for root, or for whoever "
                 "has CAP_SYS_PTRACE"));
    summary = (bp_machine_summary){.is_cut = true};
    bp_machine_summary_explain(&summary, short_text, sizeof short_text);
    cr_expect(eq(str, short_text, "it was ended before"));
}

Test(host_summary, counts_each_errno_and_the_rest_with_the_last) {
    bp_machine_summary summary = {.thread_count = 1};
    for (int i = 1; i <= BP_MACHINE_ERROR_MAX + 3; i++) {
        bp_machine_summary_error(&summary, i)->file_count++;
    }
    cr_expect(eq(sz, summary.error_count, BP_MACHINE_ERROR_MAX));
    cr_expect(eq(u64, summary.errors[0].file_count, 1));
    cr_expect(eq(u64, summary.errors[BP_MACHINE_ERROR_MAX - 1].file_count, 4));
}
