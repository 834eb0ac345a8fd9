/*
 * The time and the level that a line of a text log begins with.
 */
#include <bugpack/log.h>

#include "base/clock.h"
#include "entries/line_time.h"
#include "unit/unit.h"

/* 2026-11-21T00:36:51Z. */
static const uint64_t trigger_ns = 1795221411 * BP_NS_PER_SEC;

static void expect_time(const char *line, const char *iso, const char *rest) {
    const bp_line_clock clock = {trigger_ns, 0};
    bp_line_time time = {0};
    char text[BP_CLOCK_ISO_BYTES] = "";
    size_t used = 0;
    cr_assert(bp_line_time_read(line, strlen(line), &clock, &time, &used), "no time: %s", line);
    bp_clock_format_iso(time.wall_ns, text);
    cr_expect(strcmp(text, iso) == 0, "\"%s\" is %s and not %s", line, text, iso);
    cr_expect(strcmp(line + used, rest) == 0, "\"%s\" leaves \"%s\"", line, line + used);
}

Test(line_time, reads_the_forms_that_loggers_write) {
    static const char *const forms[][3] = {
        {"2026-11-21T00:36:51.123456Z x", "2026-11-21T00:36:51.123456Z", "x"},
        {"2026-11-21T00:36:51Z", "2026-11-21T00:36:51.000000Z", ""},
        {"2026-11-21T02:36:51+02:00 x", "2026-11-21T00:36:51.000000Z", "x"},
        {"2026-11-20T22:06:51.5-0230 x", "2026-11-21T00:36:51.500000Z", "x"},
        {"2026-11-21 00:36:51,123 - app - INFO", "2026-11-21T00:36:51.123000Z", "- app - INFO"},
        {"[2026-11-21 00:36:51.123] x", "2026-11-21T00:36:51.123000Z", "x"},
        {"2026-11-21 01:36:51 +0100 x", "2026-11-21T00:36:51.000000Z", "x"},
        {"2026-11-21 00:36:51 UTC [7] LOG:  x", "2026-11-21T00:36:51.000000Z", "[7] LOG:  x"},
        {"2026-11-21 00:36:51 -1 is left", "2026-11-21T00:36:51.000000Z", "-1 is left"},
        {"2026/11/21 00:36:51 [error] 7#7: x", "2026-11-21T00:36:51.000000Z", "[error] 7#7: x"},
        {"2026-11-21T00:36:51.1234567890123Z x", "2026-11-21T00:36:51.123456Z", "x"},
        {"<34>1 2026-11-21T00:36:51Z host x", "2026-11-21T00:36:51.000000Z", "host x"},
        {"Nov 21 00:36:51 host cron[1]: x", "2026-11-21T00:36:51.000000Z", "host cron[1]: x"},
        {"<13>Nov  1 00:36:51.25 host x", "2026-11-01T00:36:51.250000Z", "host x"},
        {"[Sat Nov 21 00:36:51.123456 2026] [core:notice] x", "2026-11-21T00:36:51.123456Z",
         "[core:notice] x"},
        {"Sat Nov 21 00:36:51 2026", "2026-11-21T00:36:51.000000Z", ""},
        {"[21/Nov/2026:01:36:51 +0100] \"GET /\"", "2026-11-21T00:36:51.000000Z", "\"GET /\""},
        {"I1121 00:36:51.123456   7 a.cc:1] x", "2026-11-21T00:36:51.123456Z",
         "I1121 00:36:51.123456   7 a.cc:1] x"},
        {"11-21 00:36:51.123  7  8 W Tag: x", "2026-11-21T00:36:51.123000Z", "7  8 W Tag: x"},
        {"1795221411.5 x", "2026-11-21T00:36:51.500000Z", "x"},
        {"1795221411123", "2026-11-21T00:36:51.123000Z", ""},
        {"1795221411123456 x", "2026-11-21T00:36:51.123456Z", "x"},
        {"1795221411123456789", "2026-11-21T00:36:51.123456Z", ""},
        {"00:36:50.75\tx", "2026-11-21T00:36:50.750000Z", "x"}};
    for (size_t i = 0; i < sizeof forms / sizeof forms[0]; i++) {
        expect_time(forms[i][0], forms[i][1], forms[i][2]);
    }
}

Test(line_time, takes_what_is_left_out_from_before_the_trigger) {
    expect_time("Dec 31 23:59:59 x", "2025-12-31T23:59:59.000000Z", "x");
    expect_time("Nov 21 20:00:00 x", "2026-11-21T20:00:00.000000Z", "x");
    expect_time("23:59:59 x", "2026-11-20T23:59:59.000000Z", "x");
    expect_time("01:00:00 x", "2026-11-21T01:00:00.000000Z", "x");
}

Test(line_time, says_what_was_left_out) {
    static const struct {
        const char *line;
        bool lacks_zone, lacks_date, lacks_year;
    } lines[] = {{"2026-11-21T00:36:51Z", false, false, false},
                 {"2026-11-21 00:36:51", true, false, false},
                 {"Nov 21 00:36:51", true, false, true},
                 {"00:36:51", true, true, false},
                 {"1795221411", false, false, false}};
    const bp_line_clock clock = {trigger_ns, 0};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bp_line_time time;
        size_t used;
        cr_assert(bp_line_time_read(lines[i].line, strlen(lines[i].line), &clock, &time, &used));
        cr_expect(time.lacks_zone == lines[i].lacks_zone &&
                      time.lacks_date == lines[i].lacks_date &&
                      time.lacks_year == lines[i].lacks_year,
                  "of \"%s\"", lines[i].line);
    }
}

Test(line_time, moves_times_without_a_zone_alone) {
    const bp_line_clock clock = {trigger_ns, 3600};
    bp_line_time time;
    size_t used;
    cr_assert(bp_line_time_read("2026-11-21 01:36:51", 19, &clock, &time, &used));
    cr_expect(eq(u64, time.wall_ns, trigger_ns));
    cr_assert(bp_line_time_read("01:36:51", 8, &clock, &time, &used));
    cr_expect(eq(u64, time.wall_ns, trigger_ns));
    cr_assert(bp_line_time_read("2026-11-21T00:36:51Z", 20, &clock, &time, &used));
    cr_expect(eq(u64, time.wall_ns, trigger_ns));
}

Test(line_time, refuses_what_is_no_time_and_leaves_the_outputs_alone) {
    static const char *const lines[] = {"",
                                        " ",
                                        "[",
                                        "<",
                                        "<34",
                                        "<34>",
                                        "x",
                                        "    at main.c:12",
                                        "2026",
                                        "2026-11-21",
                                        "2026-13-21 00:36:51",
                                        "2026-11-32 00:36:51",
                                        "2026-11-21 24:36:51",
                                        "2026-11/21 00:36:51",
                                        "2026-11-21 00:36:51x",
                                        "2026-11-21 00:36:51Zx",
                                        "1969-11-21 00:36:51",
                                        "[2026-11-21 00:36:51 x",
                                        "Nov 21",
                                        "Nov 00 00:36:51",
                                        "12:34",
                                        "12:34:56x",
                                        "1795221411x",
                                        "179522141",
                                        "12345678901",
                                        "99999999999999999999999",
                                        "0000000000",
                                        "I1321 00:36:51",
                                        "Sat 21 00:36:51",
                                        "2554-11-21 00:36:51"};
    const bp_line_clock clock = {trigger_ns, 0};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        bp_line_time time = {.wall_ns = 7};
        size_t used = 7;
        cr_expect(not(bp_line_time_read(lines[i], strlen(lines[i]), &clock, &time, &used)), "%s",
                  lines[i]);
        cr_expect(time.wall_ns == 7 && used == 7, "of \"%s\"", lines[i]);
    }
}

/* Each prefix of a line is read within its bytes; the sanitizers see what is not. */
Test(line_time, reads_no_byte_behind_a_line) {
    static const char *const lines[] = {"<34>1 2026-11-21T00:36:51.123+01:00 x [warn] x",
                                        "[Sat Nov 21 00:36:51.123456 2026] level=debug",
                                        "I1121 00:36:51.123 x", "1795221411.123 x ERROR"};
    const bp_line_clock clock = {trigger_ns, 0};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        for (size_t bytes = 0; bytes <= strlen(lines[i]); bytes++) {
            CLEANUP(free_memory) char *copy = malloc(bytes + 1); /* 0 bytes may be NULL */
            bp_line_time time;
            size_t used;
            memcpy(copy + 1, lines[i], bytes);
            (void)bp_line_time_read(copy + 1, bytes, &clock, &time, &used);
            (void)bp_line_level(copy + 1, bytes);
        }
    }
}

Test(line_time, does_without_a_trigger) {
    const bp_line_clock clock = {0, 0};
    bp_line_time time;
    size_t used;
    cr_expect(not(bp_line_time_read("00:36:51", 8, &clock, &time, &used)));
    cr_expect(not(bp_line_time_read("Nov 21 00:36:51", 15, &clock, &time, &used)));
    cr_expect(bp_line_time_read("2026-11-21 00:36:51", 19, &clock, &time, &used));
}

Test(line_time, reads_zones) {
    int32_t secs = 7;
    cr_expect(bp_line_zone_read("Z", &secs) && secs == 0);
    cr_expect(bp_line_zone_read("+01", &secs) && secs == 3600);
    cr_expect(bp_line_zone_read("-0230", &secs) && secs == -9000);
    cr_expect(bp_line_zone_read("+05:45", &secs) && secs == 20700);
    static const char *const bad[] = {"", " Z", "1", "+1", "+15", "+01:", "+01:0", "Zx", "+0100x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(not(bp_line_zone_read(bad[i], &secs)), "%s", bad[i]);
    }
    cr_expect(eq(int, secs, 20700));
}

Test(line_time, finds_the_level_that_a_line_names) {
    static const struct {
        const char *line;
        int level;
    } lines[] = {{"INFO x", BUGPACK_LEVEL_INFO},
                 {"- app - WARNING - x", BUGPACK_LEVEL_WARN},
                 {"[error] 7#7: x", BUGPACK_LEVEL_ERROR},
                 {"[core:notice] x", BUGPACK_LEVEL_INFO},
                 {"host app[7]: error: x", BUGPACK_LEVEL_ERROR},
                 {"time=1 level=debug msg=x", BUGPACK_LEVEL_DEBUG},
                 {"<trace> x", BUGPACK_LEVEL_TRACE},
                 {"[main] CRITICAL x", BUGPACK_LEVEL_FATAL},
                 {"I1121 00:36:51.1 7 a.cc:1] ERROR", BUGPACK_LEVEL_INFO},
                 {"F1121 00:36:51.1 7 a.cc:1] x", BUGPACK_LEVEL_FATAL},
                 {"no error was found", 0},
                 {"the info desk", 0},
                 {"one two three four five six seven eight ERROR", 0},
                 {"ERRORS", 0},
                 {"", 0}};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        int level = bp_line_level(lines[i].line, strlen(lines[i].line));
        cr_expect(level == lines[i].level, "\"%s\" has level %d", lines[i].line, level);
    }
}
