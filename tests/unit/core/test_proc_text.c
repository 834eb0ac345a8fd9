/*
 * The texts under /proc, whole and broken.
 */
#include "platform/linux/proc_text.h"
#include "unit/unit.h"

static const char plain_stat[] =
    "4711 (net-rx) S 1 4711 4711 0 -1 4194368 120 7 3 0 50 25 1 2 20 0 9 0 123456 1000 20 18446744"
    "073709551615 1 1 0 0 0 0 0 0 0\n";

static bool parse(const char *text, bp_proc_stat *ret_stat) {
    return bp_proc_parse_stat(text, strlen(text), ret_stat);
}

Test(proc_stat, reads_the_fields_of_a_plain_line) {
    bp_proc_stat stat;
    cr_assert(parse(plain_stat, &stat));
    cr_expect(eq(u64, stat.pid, 4711));
    cr_expect(eq(str, stat.name, "net-rx"));
    cr_expect(eq(chr, stat.state, 'S'));
    cr_expect(eq(u64, stat.parent_pid, 1));
    cr_expect(eq(u64, stat.minor_faults, 120));
    cr_expect(eq(u64, stat.major_faults, 3));
    cr_expect(eq(u64, stat.cpu_ticks, 75));
    cr_expect(eq(u64, stat.thread_count, 9));
    cr_expect(eq(u64, stat.start_ticks, 123456));
    cr_expect(not(stat.is_kernel_thread));
}

Test(proc_stat, knows_a_kernel_thread_by_its_flag) {
    bp_proc_stat stat;
    cr_assert(parse("2 (kthreadd) S 0 0 0 0 -1 2129984 0 0 0 0 0 1 0 0 20 0 1 0 6 0 0 ", &stat));
    cr_expect(stat.is_kernel_thread);
}

Test(proc_stat, ends_a_name_at_the_last_parenthesis) {
    bp_proc_stat stat;
    cr_assert(parse("7 (x) R 1 1 1 1 1 1 1) S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ", &stat));
    cr_expect(eq(str, stat.name, "x) R 1 1 1 1 1 1 1"));
    cr_expect(eq(chr, stat.state, 'S'));
    cr_expect(eq(u64, stat.cpu_ticks, 9));
}

Test(proc_stat, keeps_newlines_and_stray_bytes_of_a_name) {
    bp_proc_stat stat;
    cr_assert(parse("7 (\n\xff ) S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ", &stat));
    cr_expect(eq(str, stat.name, "\n\xff "));
}

Test(proc_stat, cuts_a_name_that_is_too_long_for_its_place) {
    char text[512];
    bp_proc_stat stat;
    (void)snprintf(text, sizeof text, "7 (%0100d) S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 9 0 ", 0);
    cr_assert(parse(text, &stat));
    cr_expect(eq(sz, strlen(stat.name), sizeof stat.name - 1));
    cr_expect(eq(u64, stat.start_ticks, 9));
}

Test(proc_stat, rejects_truncated_stat_and_leaves_output_alone) {
    const size_t start_end = (size_t)(strstr(plain_stat, "123456") - plain_stat) + 6;
    bp_proc_stat untouched, stat;
    memset(&untouched, 0x5a, sizeof untouched);
    stat = untouched;
    /* Cut right behind the start time, the number may be cut too: it needs the blank. */
    for (size_t length = 0; length <= start_end; length++) {
        cr_assert(not(bp_proc_parse_stat(plain_stat, length, &stat)), "at %zu bytes", length);
        cr_assert(memcmp(&stat, &untouched, sizeof stat) == 0, "at %zu bytes", length);
    }
    cr_expect(bp_proc_parse_stat(plain_stat, start_end + 1, &stat));
}

Test(proc_stat, rejects_garbage_and_huge_numbers_and_leaves_output_alone) {
    static const char *const broken[] = {
        "garbage",
        "7 x S 3",
        "(x) S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ",
        "7 (x S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ",
        "7 (x)S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ",
        "7 (x) SS 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ",
        "7 (x) S 3 0 0 0 -1 0 0 0 0 0 -4 5 0 0 20 0 1 0 99 0 ",
        "7 (x) S 3 0 0 0 -1 0 0 0 0 0 4x 5 0 0 20 0 1 0 99 0 ",
        "7 (x) S 3 0 0 0 -1 0 0 0 0 0 18446744073709551616 5 0 0 20 0 1 0 99 0 ",
        "7 (x) S 3 0 0 0 -1 0 0 0 0 0 18446744073709551615 1 0 0 20 0 1 0 99 0 ",
        "7 (x) S 3 0 0 0 - 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ",
        "99999999999999999999 (x) S 3 0 0 0 -1 0 0 0 0 0 4 5 0 0 20 0 1 0 99 0 ",
    };
    bp_proc_stat untouched, stat;
    memset(&untouched, 0x5a, sizeof untouched);
    stat = untouched;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        cr_assert(not(parse(broken[i], &stat)), "%s", broken[i]);
        cr_assert(memcmp(&stat, &untouched, sizeof stat) == 0, "%s", broken[i]);
    }
}

Test(proc_title, loses_its_padding_and_keeps_empty_arguments) {
    static const struct {
        const char *line;
        size_t bytes;
        uint64_t argument_count;
        size_t wanted_bytes;
    } cases[] = {
        {"nginx: master\0\0\0\0", 17, 4, 17}, /* as many as were passed: not told apart */
        {"nginx: master\0\0\0\0", 17, 3, 14},
        {"nginx: master\0\0\0\0", 17, 0, 14},
        {"printf\0\0", 8, 2, 8},
        {"printf\0\0\0", 9, 3, 9},
        {"printf\0\0", 8, 0, 8},
        {"printf\0%s\0\0\0", 12, 0, 12},
        {"a\0b\0\0\0", 6, 4, 6},
        {"a\0b\0\0\0", 6, 2, 4},
        {"\0\0\0", 3, 1, 3},
        {"", 0, 1, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect(eq(sz, bp_proc_trim_title(cases[i].line, cases[i].bytes, cases[i].argument_count),
                     cases[i].wanted_bytes),
                  "%zu", i);
    }
}

Test(proc_cmdline, loses_the_word_that_a_cut_may_have_divided) {
    static const struct {
        const char *line;
        size_t bytes, wanted_bytes;
    } cases[] = {{"", 0, 0},
                 {"app\0-t\0ghp_0123", 15, 7},
                 {"sh\0echo one ghp_0123", 20, 12},
                 {"app\0-t\0", 7, 7},
                 {"app", 3, 3}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_expect(eq(sz, bp_proc_whole_words(cases[i].line, cases[i].bytes), cases[i].wanted_bytes),
                  "%zu", i);
    }
}

Test(proc_statm, reads_two_numbers_and_rejects_anything_less) {
    uint64_t size = 1, resident = 2;
    cr_expect(not(bp_proc_parse_statm("", 0, &size, &resident)));
    cr_expect(not(bp_proc_parse_statm("100", 3, &size, &resident)));
    cr_expect(not(bp_proc_parse_statm("100 25", 6, &size, &resident)));
    cr_expect(not(bp_proc_parse_statm("100 x 5", 7, &size, &resident)));
    cr_expect(not(bp_proc_parse_statm("18446744073709551616 25 5", 25, &size, &resident)));
    cr_expect(eq(u64, size, 1));
    cr_expect(eq(u64, resident, 2));
    cr_assert(bp_proc_parse_statm("100 25 5 1 0 7 0\n", 17, &size, &resident));
    cr_expect(eq(u64, size, 100));
    cr_expect(eq(u64, resident, 25));
}

static const char status[] = "Name:\tVmHWM: 5 kB\\nVmHWM: 6\n"
                             "Uid:\t10\t20\t30\t40\n"
                             "VmHWMx:\t1\n"
                             "VmHWM:\t     123 kB\n"
                             "VmSwap:\tnone\n"
                             "Last:\t77";

static bool find(const char *key, size_t index, uint64_t *ret_value) {
    return bp_proc_find_number(status, sizeof status - 1, key, index, ret_value);
}

Test(proc_status, finds_a_key_only_at_the_start_of_a_line) {
    uint64_t value = 0;
    cr_assert(find("VmHWM", 0, &value));
    cr_expect(eq(u64, value, 123));
}

Test(proc_status, counts_the_numbers_of_a_line) {
    uint64_t value = 0;
    cr_assert(find("Uid", 1, &value));
    cr_expect(eq(u64, value, 20));
    cr_assert(find("Last", 0, &value));
    cr_expect(eq(u64, value, 77));
}

Test(proc_status, leaves_output_alone_when_there_is_no_such_number) {
    uint64_t value = 42;
    cr_expect(not(find("Uid", 4, &value)));
    cr_expect(not(find("VmSwap", 0, &value)));
    cr_expect(not(find("Missing", 0, &value)));
    cr_expect(not(find("VmHW", 0, &value)));
    cr_expect(not(bp_proc_find_number("", 0, "Uid", 0, &value)));
    cr_expect(eq(u64, value, 42));
}

Test(proc_number, reads_either_sign_and_nothing_else) {
    int64_t value = 5;
    cr_expect(not(bp_proc_parse_number("", 0, &value)));
    cr_expect(not(bp_proc_parse_number("-\n", 2, &value)));
    cr_expect(not(bp_proc_parse_number("12x\n", 4, &value)));
    cr_expect(not(bp_proc_parse_number("9223372036854775808\n", 20, &value)));
    cr_expect(eq(i64, value, 5));
    cr_assert(bp_proc_parse_number("-1000\n", 6, &value));
    cr_expect(eq(i64, value, -1000));
    cr_assert(bp_proc_parse_number("666", 3, &value));
    cr_expect(eq(i64, value, 666));
}

Test(proc_text, a_process_has_ended_with_its_last_thread) {
    bp_proc_stat stat = {.state = 'Z', .thread_count = 1};
    cr_expect(bp_proc_has_process_ended(&stat));
    stat.thread_count = 2;
    cr_expect(not(bp_proc_has_process_ended(&stat)));
}

Test(proc_text, a_mapping_has_a_length) {
    static const char text[] = "1000-1000 r-xp 00000000 08:01 7 /empty\n"
                               "1000-1001 r-xp 00000000 08:01 7 /one\n";
    bp_proc_scan scan = {text, text + sizeof text - 1};
    bp_proc_map map;
    cr_assert(bp_proc_take_map(&scan, &map));
    cr_expect(eq(u64, map.path_bytes, strlen("/one")));
    cr_expect(not(bp_proc_take_map(&scan, &map)));
}
