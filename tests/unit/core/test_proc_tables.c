/*
 * limits, cgroup and maps: one thing a line.
 */
#include "platform/linux/proc_text.h"
#include "unit/unit.h"

static const char limits_text[] =
    "Limit                     Soft Limit           Hard Limit           Units     \n"
    "Max cpu time              unlimited            unlimited            seconds   \n"
    "Max open files            1024                 524288               files     \n"
    "Max nice priority         0                    0                    \n"
    "Max broken                12x                  0                    bytes     \n"
    "Max file size             18446744073709551614 unlimited            bytes     \n"
    "Max cut                   12";

Test(proc_limits, reads_numbers_and_unlimited_and_leaves_out_broken_lines) {
    bp_resource_limit limits[8];
    size_t count = bp_proc_parse_limits(limits_text, sizeof limits_text - 1, limits, 8);
    cr_assert(eq(sz, count, 4));
    cr_expect(eq(str, limits[0].name, "Max cpu time"));
    cr_expect(eq(str, limits[0].unit, "seconds"));
    cr_expect(limits[0].soft_unlimited && limits[0].hard_unlimited);
    cr_expect(eq(str, limits[1].name, "Max open files"));
    cr_expect(eq(u64, limits[1].soft, 1024));
    cr_expect(eq(u64, limits[1].hard, 524288));
    cr_expect(not(limits[1].soft_unlimited || limits[1].hard_unlimited));
    cr_expect(eq(str, limits[2].unit, ""));
    cr_expect(eq(u64, limits[3].soft, 18446744073709551614u));
    cr_expect(limits[3].hard_unlimited);
}

Test(proc_limits, never_writes_more_than_there_is_room_for) {
    bp_resource_limit limits[2];
    memset(limits, 0x5a, sizeof limits);
    cr_expect(eq(sz, bp_proc_parse_limits(limits_text, sizeof limits_text - 1, limits, 1), 1));
    cr_expect(eq(chr, limits[1].name[0], 0x5a));
}

Test(proc_limits, cuts_a_name_and_a_unit_at_the_last_byte_that_fits) {
    static const char text[] =
        "Limit                                   Soft Limit Hard Limit Units\n"
        "Max 456789012345678901234567890123456   1         2          "
        "unit567890123456789\n";
    bp_resource_limit limit;
    cr_assert(eq(sz, bp_proc_parse_limits(text, sizeof text - 1, &limit, 1), 1));
    cr_expect(eq(str, limit.name, "Max 456789012345678901234567890"));
    cr_expect(eq(str, limit.unit, "unit56789012345"));
}

Test(proc_limits, makes_nothing_of_a_text_without_a_header) {
    bp_resource_limit limits[2];
    cr_expect(eq(sz, bp_proc_parse_limits("", 0, limits, 2), 0));
    cr_expect(eq(sz, bp_proc_parse_limits("Max cpu time 1 2 s\n", 19, limits, 2), 0));
}

static void expect_cgroup(const char *text, const char *expected) {
    const char *path = "untouched";
    size_t path_bytes = strlen(path);
    bool found = bp_proc_find_cgroup(text, strlen(text), NULL, &path, &path_bytes);
    cr_expect(eq(int, found, strcmp(expected, "untouched") != 0), "%s", text);
    char copy[64];
    (void)snprintf(copy, sizeof copy, "%.*s", (int)path_bytes, path);
    cr_expect(eq(str, copy, expected), "%s", text);
}

Test(proc_cgroup, takes_the_unified_path) {
    expect_cgroup("0::/user.slice/app.scope\n", "/user.slice/app.scope");
    expect_cgroup("3:memory:/m\n1:name=systemd:/s\n0::/u:with:colons\n", "/u:with:colons");
}

Test(proc_cgroup, takes_systemds_path_and_then_any_where_the_unified_one_says_nothing) {
    expect_cgroup("3:memory:/m\n1:name=systemd:/s\n0::/\n", "/s");
    expect_cgroup("3:memory:/m\n1:name=systemd:/\n0::/\n", "/m");
    expect_cgroup("4:cpu,cpuacct:/\n3:memory:/docker/1\n", "/docker/1");
    expect_cgroup("4:cpu,cpuacct:/\n0::/\n", "/");
}

Test(proc_cgroup, has_a_path_for_each_controller_of_version_1) {
    static const char text[] = "4:cpu,cpuacct:/c\n3:memory:/m\nx\n2:cpuset:/s\n0::/u\n";
    static const char *const pairs[][2] = {{"cpu", "/c"}, {"cpuacct", "/c"}, {"memory", "/m"}};
    const char *path = "untouched";
    size_t path_bytes = 0;
    cr_expect(not(bp_proc_find_cgroup(text, sizeof text - 1, "pids", &path, &path_bytes)));
    cr_expect(not(bp_proc_find_cgroup(text, sizeof text - 1, "cpuse", &path, &path_bytes)));
    cr_expect(eq(str, path, "untouched"));
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        cr_assert(bp_proc_find_cgroup(text, sizeof text - 1, pairs[i][0], &path, &path_bytes));
        cr_expect(path_bytes == 2 && memcmp(path, pairs[i][1], 2) == 0, "%s", pairs[i][0]);
    }
}

Test(proc_cgroup, rejects_garbage_and_leaves_output_alone) {
    expect_cgroup("", "untouched");
    expect_cgroup("0:\n0::\nx::/y\n1:cpu:relative\n", "untouched");
}

static bool parse_map(const char *line, bp_proc_map *ret_map) {
    bp_proc_scan scan = {line, line + strlen(line)};
    return bp_proc_take_map(&scan, ret_map);
}

Test(proc_maps, reads_a_mapping_of_a_file) {
    bp_proc_map map;
    cr_assert(parse_map("7f00deadb000-7f00deadc000 r-xp 00001000 fe:0a 1234        /usr/lib/a b.so",
                        &map));
    cr_expect(eq(u64, map.start, 0x7f00deadb000));
    cr_expect(eq(u64, map.end, 0x7f00deadc000));
    cr_expect(map.is_executable);
    cr_expect(eq(u64, map.device_major, 0xfe));
    cr_expect(eq(u64, map.device_minor, 0x0a));
    cr_expect(eq(u64, map.inode, 1234));
    cr_assert(eq(sz, map.path_bytes, strlen("/usr/lib/a b.so")));
    cr_expect(memcmp(map.path, "/usr/lib/a b.so", map.path_bytes) == 0);
}

Test(proc_maps, reads_a_mapping_of_no_file) {
    bp_proc_map map;
    cr_assert(parse_map("ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0", &map));
    cr_expect(eq(sz, map.path_bytes, 0));
    cr_assert(parse_map("1000-2000 rw-p 00000000 00:00 0 ", &map));
    cr_expect(eq(sz, map.path_bytes, 0));
    cr_expect(not(map.is_executable));
}

Test(proc_maps, rejects_garbage_and_leaves_output_alone) {
    static const char *const broken[] = {
        "",
        "garbage",
        "1000-2000",
        "2000-1000 r-xp 0 0:0 1 /x",
        "1000-1000 r-xp 0 0:0 1 /x",
        "1000-2000 r-x 0 0:0 1 /x",
        "1000-2000 r-xp 0 0:0 /x",
        "1000-2000 r-xp 0 0:0 1x /x",
        "10000000000000000-20000000000000000 r-xp 0 0:0 1 /x",
        "1000-2000 r-xp 0 0:0 99999999999999999999 /x",
    };
    bp_proc_map untouched, map;
    memset(&untouched, 0x5a, sizeof untouched);
    map = untouched;
    for (size_t i = 0; i < sizeof broken / sizeof broken[0]; i++) {
        cr_assert(not(parse_map(broken[i], &map)), "%s", broken[i]);
        cr_assert(memcmp(&map, &untouched, sizeof map) == 0, "%s", broken[i]);
    }
}

Test(proc_maps, turns_escaped_newlines_back_and_nothing_else) {
    char out[64];
    static const char escaped[] = "/a\\012b\\x\\01";
    size_t length = bp_proc_unescape_path(escaped, sizeof escaped - 1, out);
    cr_expect(eq(str, out, "/a\nb\\x\\01"));
    cr_expect(eq(sz, length, strlen(out)));
}

Test(proc_maps, knows_the_name_of_a_deleted_file) {
    cr_expect(eq(sz, bp_proc_deleted_path_length("/a/b (deleted)", 14), 4));
    cr_expect(eq(sz, bp_proc_deleted_path_length("/a/b", 4), 0));
    cr_expect(eq(sz, bp_proc_deleted_path_length(" (deleted)", 10), 0));
    cr_expect(eq(sz, bp_proc_deleted_path_length("/a (deleted) ", 13), 0));
}
