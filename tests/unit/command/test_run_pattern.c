/*
 * Lines that become gaps.
 */
#include <bugpack/log.h>

#include "run/pattern.h"
#include "unit/unit.h"

static bp_run_patterns patterns;
static char key[BP_RUN_KEY_BYTES];

static void set_up(void) {
    patterns.count = 0;
    key[0] = '\0';
}

static void tear_down(void) {
    bp_run_patterns_release(&patterns);
}

TestSuite(run_pattern, .init = set_up, .fini = tear_down);

static void use(const char *expression) {
    cr_assert(eq(int, bp_run_patterns_add(&patterns, expression, &failure), BUGPACK_OK), "%s",
              failure.message);
}

static bool matches(const char *line) {
    return bp_run_patterns_match(&patterns, "stderr", line, strlen(line), key);
}

Test(run_pattern, gives_the_key_of_a_line) {
    static const struct {
        const char *what, *expression, *line, *key;
    } rows[] = {
        {"the first group", "unknown opcode ([0-9]+)", "12:00 unknown opcode 77 from peer",
         "stderr:line:77"},
        {"no group", "opcode [0-9]+", "unknown opcode 77 from peer", "stderr:line:opcode 77"},
        {"a group that took no part", "(draw)|copy", "copy", "stderr:line:copy"},
        {"a key", "gap (.*)$", "gap display:unimpl:draw_rop3", "display:unimpl:draw_rop3"},
        {"a blank in a key", "gap (.*)$", "gap a b:c:d", "stderr:line:a b:c:d"},
        {"no end of a key", "gap (.*)$", "gap a:b:", "stderr:line:a:b:"},
        {"colour", "^ERROR: (.*)$",
         "\033[1;31mERROR\033[0m: x\033]8;;http://a\033\\y\033]8;;\a\033(B", "stderr:line:xy"},
        {"control characters", "(.*)", "a\x7f~\tb", "stderr:line:a ~ b"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tear_down();
        set_up();
        use(rows[i].expression);
        cr_assert(matches(rows[i].line), "%s", rows[i].what);
        cr_expect(eq(str, key, (char *)rows[i].key), "%s", rows[i].what);
    }
}

Test(run_pattern, the_first_pattern_that_matches_wins) {
    use("never");
    use("(b)");
    use("(a)");
    cr_assert(matches("ab"));
    cr_expect(eq(str, key, "stderr:line:b"));
}

Test(run_pattern, a_nul_does_not_end_a_line) {
    use("tail");
    cr_expect(bp_run_patterns_match(&patterns, "stdout", "head\0tail", 9, key));
}

Test(run_pattern, an_empty_match_is_none_and_leaves_the_key_alone) {
    use("x*");
    (void)snprintf(key, sizeof key, "untouched");
    cr_expect(not(matches("abc")));
    cr_expect(eq(str, key, "untouched"));
}

Test(run_pattern, a_long_key_is_cut_between_characters) {
    use("(.*)");
    char line[1024];
    for (size_t i = 0; i + 1 < sizeof line; i += 2) {
        memcpy(line + i, "\303\251", 2);
    }
    line[1022] = '\0';
    cr_assert(matches(line));
    size_t length = strlen(key);
    cr_expect(lt(sz, length, BP_RUN_KEY_BYTES));
    cr_expect(gt(sz, length, BP_RUN_KEY_BYTES - 4));
    cr_expect(eq(int, (unsigned char)key[length - 1], 0xa9));
}

Test(run_pattern, refuses_what_is_no_expression) {
    cr_expect(eq(int, bp_run_patterns_add(&patterns, "a(b", &failure), BUGPACK_ERR_INVALID));
    cr_expect(strstr(failure.message, "a(b") != NULL);
    cr_expect(eq(sz, patterns.count, 0));
    cr_expect(not(matches("ab")));
}

Test(run_pattern, a_sequence_that_is_broken_off_ends_with_the_line) {
    static const char *const pieces[] = {"a\033",         "a\033[", "a\033[1;",
                                         "a\033]0;title", "a\033P", "a\033("};
    use("(.*)");
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        cr_assert(matches(pieces[i]));
        cr_expect(eq(str, key, "stderr:line:a"));
    }
}

Test(run_pattern, what_follows_a_broken_sequence_is_matched) {
    static const char *const pieces[] = {"\033\tERROR", "\033[31\tERROR", "\033\xc3\xa9 ERROR"};
    use("(ERROR)");
    for (size_t i = 0; i < sizeof pieces / sizeof pieces[0]; i++) {
        cr_expect(matches(pieces[i]));
    }
}

Test(run_pattern, the_longest_line_of_a_log_matches_and_its_key_is_full) {
    static char line[BUGPACK_LOG_MESSAGE_MAX_BYTES + 2];
    memset(line, 'x', sizeof line - 1);
    use("x+");
    cr_expect(not(matches(line)));
    line[BUGPACK_LOG_MESSAGE_MAX_BYTES] = '\0';
    cr_assert(matches(line));
    cr_expect(eq(sz, strlen(key), BP_RUN_KEY_BYTES - 1));
}
