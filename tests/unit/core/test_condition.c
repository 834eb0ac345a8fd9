/*
 * Conditions as text, judged by recorded series of samples.
 */
#include "base/clock.h"
#include "model/condition.h"
#include "unit/unit.h"

static bp_condition *made(const char *text) {
    bp_condition *condition = NULL;
    cr_assert(zero(int, bp_condition_new(text, &condition, &failure)), "%s", failure.message);
    return condition;
}

Test(condition, reads_every_form) {
    static const char *const good[] = {"cpu > 90",
                                       "cpu > 90%",
                                       "cpu<0.5 for 1.5h",
                                       "  rss>2G  ",
                                       "rss < 10.5M for 500ms",
                                       "rss > 4096",
                                       "rss grows 100M in 1min",
                                       "threads > 500",
                                       "threads grows 50 in 10s",
                                       "fds > 900",
                                       "fds grows 1 in 1s",
                                       "state = D for 30s",
                                       "state=T",
                                       "log /a\\/b|c/",
                                       "log // /",
                                       "idle for 30s"};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        bp_condition_free(made(good[i]));
    }
}

Test(condition, refuses_with_what_is_wrong) {
    static char too_long[BUGPACK_CONDITION_MAX_BYTES + 2];
    memset(too_long, ' ', sizeof too_long - 1);
    memcpy(too_long, "cpu > 9", 7);
    static const struct {
        const char *text, *part;
    } bad[] = {{NULL, "1 to 255 bytes"},
               {"", "1 to 255 bytes"},
               {too_long, "1 to 255 bytes"},
               {"cpu > 9\n", "1 to 255 bytes"},
               {"cpu > \xff", "1 to 255 bytes"},
               {"log /\x1b[31m/", "1 to 255 bytes"},
               {"memory > 2G", "does not begin with cpu, rss (resident memory)"},
               {"CPU > 2", "does not begin with cpu"},
               {" ", "does not begin with cpu"},
               {"cpu", "'' is not understood after cpu; write it as cpu > 90"},
               {"cpu = 90", "'= 90' is not understood after cpu"},
               {"cpu >> 90", "'>> 90' is not understood after cpu"},
               {"cpu >= 90", "'= 90' is no number of percent"},
               {"cpu > -1", "'-1' is no number of percent"},
               {"cpu > +1", "'+1' is no number of percent"},
               {"cpu > 1e99", "'1e99' is no number of percent"},
               {"cpu > nan", "'nan' is no number of percent"},
               {"cpu > 0x10", "'0x10' is no number of percent"},
               {"cpu > 90.", "'90.' is no number of percent"},
               {"cpu > .5", "'.5' is no number of percent"},
               {"cpu > 1G", "'1G' is no number of percent"},
               {"cpu grows 10 in 1min", "is not understood after cpu"},
               {"cpu > 90 for", "'for' has no time"},
               {"cpu > 90 for 10", "'for 10' has no time"},
               {"cpu > 90 for 0s", "'for 0s' has no time"},
               {"cpu > 90 for 999999h", "has no time"},
               {"cpu > 90 for 10s 5s", "'5s' is too much"},
               {"cpu > 90 rss > 2G", "'rss > 2G' is too much"},
               {"rss > 2X", "'2X' is no number of bytes; write it as rss > 2G"},
               {"rss > 99999999999999999999999999999999", "is no number of bytes"},
               {"rss > 99999999999999G", "is no number of bytes"},
               {"rss grows 100M", "'' is no time in which it grows"},
               {"rss grows 100M in", "'in' is no time"},
               {"rss grows 100M for 1min", "'for 1min' is no time in which it grows"},
               {"rss grows 100M in 1min for 3s", "'for 3s' is too much"},
               {"threads > 1.5", "'1.5' is no number of threads"},
               {"threads > 5K", "'5K' is no number of threads"},
               {"fds > many", "'many' is no number of fds"},
               {"state = X", "'X' is no state"},
               {"state = DD", "'DD' is no state"},
               {"state =", "'' is no state"},
               {"state > D", "is not understood after state"},
               {"log", "is not understood after log"},
               {"log error", "is not understood after log"},
               {"log /error", "has no second /"},
               {"log //", "the pattern is empty"},
               {"log /(/", "at byte 1: missing closing parenthesis; write it as log /PATTERN/"},
               {"log /x/ for 3s", "'for 3s' is too much"},
               {"idle", "is not understood after idle"},
               {"idle for ever", "'ever' is no time"}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bp_condition *condition = NULL;
        cr_assert(eq(int, bp_condition_new(bad[i].text, &condition, &failure), BUGPACK_ERR_INVALID),
                  "%s", bad[i].text);
        cr_assert(ne(ptr, strstr(failure.message, bad[i].part), NULL), "<%s> lacks <%s>",
                  failure.message, bad[i].part);
        cr_assert(eq(ptr, condition, NULL));
    }
}

/* A sample a second. */
static bp_condition *condition;
static bp_condition_sample sample;
static bp_condition_truth truth;

static void begin(const char *text) {
    bp_condition_free(condition);
    condition = made(text);
    sample = (bp_condition_sample){.taken_ns = 1000 * BP_NS_PER_SEC};
}

static void end(void) {
    bp_condition_free(condition);
}

TestSuite(condition_series, .fini = end);

/* `secs` later, of which `due_secs` were meant. */
static bool look(double secs, double due_secs) {
    sample.due_ns = sample.taken_ns + (uint64_t)(due_secs * 1e9);
    sample.taken_ns += (uint64_t)(secs * 1e9);
    return bp_condition_look(condition, &sample, &truth);
}

static bool use_cpu(double percent, double secs, double due_secs) {
    sample.cpu_ns += (uint64_t)(percent / 100 * secs * 1e9);
    return look(secs, due_secs);
}

static bool use_memory(double mib) {
    sample.rss_bytes = (bp_known_uint){true, (uint64_t)(mib * 1048576)};
    return look(1, 1);
}

static void expect_found(const char *wanted) {
    char text[BP_CONDITION_VALUE_BYTES];
    bp_condition_print_value(&truth, text);
    cr_assert(eq(str, text, wanted));
}

Test(condition_series, becomes_true_once_until_it_was_false) {
    static const struct {
        const char *what, *text;
        bool is_cpu;       /* percent of each second, else MiB at its end */
        double values[8];  /* to the first that is negative */
        const char *edges; /* '+' where it becomes true */
        const char *found; /* at the last edge */
    } rows[] = {
        {"true again", "rss > 2G", false, {2048, 2049, 3000, 2048, 2050, -1}, "-+--+", "2.0 GiB"},
        {"true before", "rss < 10M", false, {9, -1}, "+", "9.0 MiB"},
        {"at every sample",
         "cpu > 90 for 3s",
         true,
         {0, 99, 99, 50, 95, 95, 95, -1},
         "------+",
         "95.0 % of a CPU; true for 3.0 s"},
        {"from an instant on",
         "rss > 1M for 2s",
         false,
         {2, 2, 2, -1},
         "--+",
         "2.0 MiB; true for 2.0 s"},
        {"of one CPU",
         "cpu > 150",
         true,
         {0, 150, 151, -1},
         "--+",
         "151.0 % of a CPU; true for 1.0 s"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(rows[i].text);
        sample.cpu_ns = 500 * BP_NS_PER_SEC; /* what it used before says nothing */
        for (size_t at = 0; rows[i].values[at] >= 0; at++) {
            double value = rows[i].values[at];
            bool is_edge = rows[i].is_cpu ? use_cpu(value, 1, 1) : use_memory(value);
            cr_assert(eq(int, is_edge, rows[i].edges[at] == '+'), "%s, step %zu", rows[i].what, at);
        }
        cr_assert(eq(str, truth.text, (char *)rows[i].text));
        expect_found(rows[i].found);
    }
    sample.cpu_ns -= BP_NS_PER_SEC; /* no counter goes back: nothing is known */
    cr_assert(not(look(1, 1)));
}

Test(condition_series, reads_fractions_and_units) {
    static const struct {
        const char *text;
        double mib;
    } rows[] = {{"rss > 1.25G", 1280},        {"rss > 2048K", 2},   {"rss > 10.05M", 10.05},
                {"rss > 0.5T", 512 * 1024.0}, {"rss > 3145728", 3}, {"rss > 12M", 12}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        begin(rows[i].text);
        cr_expect(not(use_memory(rows[i].mib - 0.001)), "%s", rows[i].text);
        cr_expect(use_memory(rows[i].mib + 0.001), "%s", rows[i].text);
    }
    static const struct {
        const char *text;
        int seconds;
    } times[] = {
        {"rss > 1M for 1.5min", 90}, {"rss > 1M for 3000ms", 3}, {"rss > 1M for 0.01h", 36}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        begin(times[i].text);
        for (int second = 0; second <= times[i].seconds; second++) {
            bool is_edge = use_memory(2);
            cr_expect(eq(int, is_edge, second == times[i].seconds), "%s, %d", times[i].text,
                      second);
        }
    }
}

Test(condition_series, time_in_which_nobody_looked_does_not_count) {
    begin("cpu > 90 for 10s");
    cr_assert(not(use_cpu(0, 1, 1)));
    for (int i = 0; i < 8; i++) {
        cr_assert(not(use_cpu(99, 1, 1)));
    }
    cr_assert(not(use_cpu(99, 3600, 1))); /* a quarter more than was meant */
    cr_assert(use_cpu(99, 1, 1));
    cr_assert(eq(u64, truth.lasted_ns, 10250 * BP_NS_PER_MS));
}

Test(condition_series, a_sample_just_after_another_one_is_passed_over) {
    begin("cpu > 90");
    cr_assert(not(use_cpu(0, 1, 1)));
    cr_assert(not(use_cpu(1000, 0.01, 0.01))); /* one tick of 10 ms */
    cr_assert(not(use_cpu(0, 0.99, 1)));
}

Test(condition_series, grows_is_above_the_lowest_within_the_time) {
    begin("rss grows 100M in 10s");
    for (int i = 0; i < 100; i++) { /* 9 MiB a second: 90 in ten */
        cr_assert(not(use_memory(500 + 9 * i)), "second %d", i);
    }
    cr_assert(not(use_memory(100))); /* falls */
    cr_assert(not(use_memory(199)));
    cr_assert(use_memory(200));
    expect_found("100.0 MiB more within 10.0 s");
    cr_assert(eq(dbl, truth.value, 100 * 1048576.0));
    for (int i = 0; i < 20; i++) {
        cr_assert(not(use_memory(200)));
    }
    cr_assert(use_memory(301));
}

Test(condition_series, grows_over_a_long_time_in_few_points) {
    begin("threads grows 60 in 1h");
    for (uint64_t i = 0; i < 20000; i++) { /* 59 in an hour */
        sample.thread_count = (bp_known_uint){true, 1 + i * 59 / 3600};
        cr_assert(not(look(1, 1)), "second %d", (int)i);
    }
    bool is_true = false;
    for (uint64_t i = 0; i < 60; i++) {
        sample.thread_count.value++;
        is_true = look(1, 1) || is_true;
    }
    cr_assert(is_true);
}

Test(condition_series, what_is_not_known_changes_nothing) {
    begin("fds > 10");
    cr_assert(not(look(1, 1)));
    sample.file_count = (bp_known_uint){true, 11};
    cr_assert(look(1, 1));
    expect_found("11");
    sample.file_count.known = false;
    cr_assert(not(look(1, 1)));
    sample.file_count.known = true;
    cr_assert(not(look(1, 1))); /* it was not false in between */
    cr_assert(eq(u64, (uint64_t)bp_condition_needs(condition),
                 BP_CONDITION_NEEDS_SAMPLES | BP_CONDITION_NEEDS_FILES));
}

Test(condition_series, state_is_a_letter) {
    begin("state = D for 2s");
    static const char states[] = {'S', 'D', 'D', 0, 'D'};
    for (size_t i = 0; i < sizeof states; i++) {
        sample.state = states[i];
        cr_assert(eq(int, look(1, 1), i == 4), "step %zu", i);
    }
    expect_found("true for 2.0 s");
}

Test(condition_series, idle_is_neither_cpu_nor_output) {
    begin("idle for 3s");
    cr_assert(not(use_cpu(0, 1, 1)));
    cr_assert(not(use_cpu(0.5, 1, 1)));
    cr_assert(not(use_cpu(0.5, 1, 1)));
    sample.is_active = true;
    cr_assert(not(use_cpu(0, 0.1, 1))); /* a sample that is passed over */
    sample.is_active = false;
    cr_assert(not(use_cpu(0, 1, 1)));
    cr_assert(not(use_cpu(2, 1, 1)));
    cr_assert(not(use_cpu(0, 1, 1)));
    cr_assert(not(use_cpu(0, 1, 1)));
    cr_assert(use_cpu(0, 1, 1));
    expect_found("0.0 % of a CPU; true for 3.0 s");
}

Test(condition_series, a_line_of_the_log_matches) {
    begin("log /out of (memory|space)/");
    static const char hostile[] = "\0out of\xff out of space\0";
    cr_assert(not(bp_condition_look_at_line(condition, "out of", 6, 7, &truth)));
    cr_assert(bp_condition_look_at_line(condition, hostile, sizeof hostile, 8, &truth));
    expect_found("log record 8");
    cr_assert(not(look(1, 1)));
    begin("cpu > 1");
    cr_assert(not(bp_condition_look_at_line(condition, "cpu > 1", 7, 1, &truth)));
}

Test(condition_series, a_pattern_that_needs_too_many_steps_does_not_match) {
    static char line[4096];
    begin("log /(a+)+$/");
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = 'b';
    cr_assert(not(bp_condition_look_at_line(condition, line, sizeof line, 1, &truth)));
}

Test(condition, prints_itself_for_the_metadata) {
    static const struct {
        bp_condition_truth truth;
        const char *json;
    } cases[] = {
        {{.text = "cpu > 90", .unit = "percent", .value = 1, .lasted_ns = 0}, "\"value\": 1"},
        {{.text = "log /x/", .log_sequence = 7}, "\"log_seq\": 7"},
        {{.text = "state = T", .lasted_ns = 2 * BP_NS_PER_SEC}, "\"found\": \"true for 2.0 s\""}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bp_json json;
        BUFFER(out, 4096);
        bp_json_begin(&json, &out);
        bp_condition_add(&json, NULL);
        bp_condition_add(&json, &cases[i].truth);
        cr_assert(zero(int, bp_json_finish(&json, NULL)));
        cr_assert(ne(ptr, strstr(bp_buffer_text(&out), cases[i].json), NULL), "%s",
                  bp_buffer_text(&out));
    }
}
