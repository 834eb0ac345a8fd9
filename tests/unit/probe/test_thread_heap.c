/*
 * thread-heap.json as it is printed, the stable names, and what is said of a refusal.
 */
#include <errno.h>

#include "heap/thread_heap.h"
#include "support/heap_samples.h"
#include "support/json_line.h"
#include "unit/unit.h"

static bp_buffer out;

static void begin(void) {
    bp_buffer_init(&out, (size_t)1 << 20);
}

static void end(void) {
    bp_buffer_release(&out);
}

TestSuite(thread_heap, .init = begin, .fini = end);

Test(thread_heap, has_every_key_in_order_and_hostile_names_made_valid) {
    cr_assert(eq(int, bp_thread_heap_print(&sample_heap_full, 1, &out, NULL), BUGPACK_OK));
    json_line_fold(&out, 0);
    cr_assert(eq(str, out.data,
                 "{\"schema\":2,\"pid\":4711,\"name\":\"viewer\xee\xbf\xbf\",\"measured\":true,"
                 "\"jemalloc\":{\"path\":\"/usr/lib/libjemalloc.so.2\","
                 "\"build_id\":\"1d5163c246dc9cd2\",\"place\":\"library\","
                 "\"offsets_from\":\"calibration\"},\"interrupted\":false,\"snapshots\":[{"
                 "\"taken_at\":\"2026-11-21T00:36:51.123456Z\","
                 "\"monotonic_ns\":1,\"stopped_threads\":1,"
                 "\"vanished_threads\":2,\"threads\":[{\"tid\":4711,"
                 "\"name\":\"net)\\n\xee\xbf\xbf\",\"measured\":true,"
                 "\"allocated_bytes\":9007199254740993,\"deallocated_bytes\":40960},{"
                 "\"tid\":4712,\"name\":\"\",\"measured\":false,\"failure\":\"waitpid\"}]},{"
                 "\"taken_at\":\"2026-11-21T00:36:52.123456Z\","
                 "\"monotonic_ns\":18446744073709551615,\"stopped_threads\":0,"
                 "\"vanished_threads\":0,\"threads\":[{\"tid\":4711,"
                 "\"name\":\"net)\\n\xee\xbf\xbf\",\"measured\":true,"
                 "\"allocated_bytes\":9007199254740993,\"deallocated_bytes\":40960},{"
                 "\"tid\":4712,\"name\":\"\",\"measured\":false,\"failure\":\"waitpid\"}]}]}"));
    cr_assert(eq(sz, bp_thread_heap_unread_count(&sample_heap_full), 1));
}

Test(thread_heap, has_the_descendants_of_a_process_below_it) {
    const bp_thread_heap_reading readings[] = {sample_heap_bare, sample_heap_full};
    cr_assert(eq(int, bp_thread_heap_print(readings, 2, &out, NULL), BUGPACK_OK));
    cr_expect(strstr(out.data, "\n  \"failure\": \"jemalloc-not-found\",\n") != NULL);
    cr_expect(strstr(out.data, "\n  \"snapshots\": [],\n"
                               "  \"descendants\": [\n"
                               "    {\n"
                               "      \"pid\": 4711,\n") != NULL);
    cr_expect(strstr(out.data, "\n              \"allocated_bytes\": 9007199254740993,\n") != NULL);
}

Test(thread_heap, says_why_nothing_is_measured) {
    cr_assert(eq(int, bp_thread_heap_print(&sample_heap_bare, 1, &out, NULL), BUGPACK_OK));
    json_line_fold(&out, 0);
    cr_assert(eq(str, out.data,
                 "{\"schema\":2,\"pid\":4711,\"name\":\"\",\"measured\":false,"
                 "\"failure\":\"jemalloc-not-found\","
                 "\"reason\":\"the process has no jemalloc that could be found\","
                 "\"interrupted\":true,\"snapshots\":[]}"));
    cr_assert(eq(sz, bp_thread_heap_unread_count(&sample_heap_bare), 0));
}

Test(thread_heap, shows_a_terminal_nothing_that_it_obeys) {
    cr_assert(eq(int, bp_thread_heap_print_text(&sample_heap_full, &out, NULL), BUGPACK_OK));
    for (size_t i = 0; i < out.size; i++) {
        unsigned char byte = (unsigned char)out.data[i];
        cr_assert(byte == '\n' || (byte >= 0x20 && byte < 0x7f));
    }
    cr_assert(
        ne(ptr, strstr(out.data, "      4712             (unknown)               waitpid"), NULL));
}

/* Scripts compare these: a change here is a change of the schema. */
Test(thread_heap, failures_have_the_names_that_were_published) {
    static const char *const names[BP_HEAP_FAILURE_COUNT] = {"none",
                                                             "self",
                                                             "pid-missing",
                                                             "readlink-failure",
                                                             "maps-read-failure",
                                                             "jemalloc-not-found",
                                                             "arch-mismatch",
                                                             "dwarf-parse-failure",
                                                             "calibration-refused",
                                                             "calibration-failure",
                                                             "unsupported",
                                                             "thread-pointer",
                                                             "ptrace-seize",
                                                             "ptrace-interrupt",
                                                             "waitpid",
                                                             "get-regset",
                                                             "process-vm-readv",
                                                             "tls-arithmetic",
                                                             "system-error"};
    for (int i = 0; i < BP_HEAP_FAILURE_COUNT; i++) {
        cr_assert(eq(str, bp_heap_failure_name((bp_heap_failure)i), names[i]));
    }
    cr_assert(eq(str, bp_heap_failure_name((bp_heap_failure)99), "unknown"));
    cr_assert(eq(str, bp_heap_failure_name((bp_heap_failure)-1), "unknown"));
}

Test(thread_heap, absence_is_told_from_refusal) {
    cr_assert(bp_heap_failure_is_absence(BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND, 0));
    cr_assert(bp_heap_failure_is_absence(BP_HEAP_FAILURE_SELF, 0));
    cr_assert(bp_heap_failure_is_absence(BP_HEAP_FAILURE_READLINK, ENOENT));
    cr_assert(not(bp_heap_failure_is_absence(BP_HEAP_FAILURE_READLINK, EACCES)));
    cr_assert(not(bp_heap_failure_is_absence(BP_HEAP_FAILURE_VM_READV, EPERM)));
}

Test(thread_heap, trouble_of_ours_says_nothing_about_a_process) {
    cr_assert(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_MAPS_READ, EMFILE));
    cr_assert(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_MAPS_READ, ELOOP));
    cr_assert(not(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_MAPS_READ, EACCES)));
    cr_assert(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_SYSTEM, 0));
    cr_assert(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_READLINK, EIO));
    cr_assert(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_READLINK, ENOTDIR));
    cr_assert(not(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_READLINK, ENOENT)));
    cr_assert(not(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_VM_READV, EPERM)));
    cr_assert(not(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_VM_READV, EFAULT)));
    cr_assert(not(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_WAITPID, ETIMEDOUT)));
    cr_assert(not(bp_heap_failure_is_trouble(BP_HEAP_FAILURE_JEMALLOC_NOT_FOUND, 0)));
}

Test(thread_heap, a_refusal_of_the_kernel_says_what_to_do_about_it) {
    static const struct {
        int scope;
        const char *words;
    } cases[] = {{1, "set it to 0"},
                 {2, "administrators only"},
                 {3, "until the next boot"},
                 {0, "in a container allow it CAP_SYS_PTRACE"},
                 {-1, "in a container allow it CAP_SYS_PTRACE"}};
    char advice[512];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_heap_advice(BP_HEAP_FAILURE_VM_READV, EPERM, cases[i].scope, advice, sizeof advice);
        cr_assert(ne(ptr, strstr(advice, cases[i].words), NULL), "%s", advice);
        cr_assert(ne(ptr, strstr(advice, "the memory of the process cannot be read"), NULL));
    }
    bp_heap_advice(BP_HEAP_FAILURE_VM_READV, EFAULT, 1, advice, sizeof advice);
    cr_assert(eq(ptr, strstr(advice, "Yama"), NULL), "no advice for what no privilege mends");
    bp_heap_advice(BP_HEAP_FAILURE_PTRACE_SEIZE, EPERM, 0, advice, sizeof advice);
    cr_assert(ne(ptr, strstr(advice, "debugger"), NULL), "a second tracer is EPERM too");
    bp_heap_advice(BP_HEAP_FAILURE_READLINK, ENOENT, 0, advice, sizeof advice);
    cr_assert(ne(ptr, strstr(advice, "its first thread has ended"), NULL), "others may go on");
    char small[8];
    bp_heap_advice(BP_HEAP_FAILURE_VM_READV, EPERM, 1, small, sizeof small);
    cr_assert(eq(sz, strlen(small), sizeof small - 1));
}
