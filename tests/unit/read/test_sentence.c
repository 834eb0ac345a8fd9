/*
 * Sentences of findings: patterns with typed arguments.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <string.h>

#include "diagnose/sentence.h"

static const bp_argument cat = {.kind = BP_ARGUMENT_PROCESS,
                                .text = "cat",
                                .rest = "stopped",
                                .max_bytes = BP_SENTENCE_BYTES,
                                .id = 7};
static const bp_argument tee = {.kind = BP_ARGUMENT_PROCESS,
                                .text = "tee",
                                .rest = "",
                                .max_bytes = BP_SENTENCE_BYTES,
                                .id = 8};
static const bp_argument wait = {.kind = BP_ARGUMENT_WAIT,
                                 .text = "pipe 3 of cat",
                                 .rest = " and 2 more",
                                 .max_bytes = BP_SENTENCE_BYTES,
                                 .id = 7};
static const bp_argument thread = {.kind = BP_ARGUMENT_THREAD, .text = "net", .id = 12};

static char *print(const char *pattern, const bp_argument *arguments) {
    static bp_sentence sentence;
    bp_sentence_print(&sentence, pattern, arguments);
    cr_expect(eq(sz, sentence.length, strlen(sentence.text)));
    return sentence.text;
}

Test(sentence, prints_each_kind_of_argument) {
    cr_expect(eq(str, print("as it is", BP_ARGUMENTS(BP_END)), "as it is"));
    cr_expect(eq(str,
                 print("{}, {}", BP_ARGUMENTS(BP_TEXT("one"), BP_CUT_TEXT("caf\u00e9 noir", 8))),
                 "one, c\u2026noir"));
    cr_expect(
        eq(str,
           print("{} {} {}", BP_ARGUMENTS(BP_COUNT(3), BP_NUMBER(2.25, 1, " %"), BP_SECS(1500.0))),
           "3 2.2 % 1.5 s"));
    cr_expect(eq(str, print("thread {} waits for {}", BP_ARGUMENTS(thread, wait)),
                 "thread 12 \"net\" waits for pipe 3 of cat (7) and 2 more"));
    cr_expect(eq(str, print("{}|{}", BP_ARGUMENTS(BP_TEXT(NULL))), "|"));
}

Test(sentence, agrees_with_numbers_and_clauses) {
    static const char counted[] = "{} thread{|s} wait{s|}";
    cr_expect(eq(str, print(counted, BP_ARGUMENTS(BP_COUNT(1))), "1 thread waits"));
    cr_expect(eq(str, print(counted, BP_ARGUMENTS(BP_COUNT(2))), "2 threads wait"));
    cr_expect(
        eq(str, print("{}{,} holds it", BP_ARGUMENTS(cat)), "cat (7), which is stopped, holds it"));
    cr_expect(eq(str, print("{}{,} holds it", BP_ARGUMENTS(tee)), "tee (8) holds it"));
}

Test(sentence, leaves_out_groups_of_what_is_not_there) {
    static const char pattern[] = "a{[, in {}]}{[, and {} more]}.";
    cr_expect(
        eq(str, print(pattern, BP_ARGUMENTS(BP_TEXT("f"), BP_COUNT(2))), "a, in f, and 2 more."));
    cr_expect(eq(str, print(pattern, BP_ARGUMENTS(BP_TEXT(""), BP_COUNT(0))), "a."));
    cr_expect(eq(str, print(pattern, BP_ARGUMENTS(BP_TEXT(""), BP_COUNT(2))), "a, and 2 more."));
}

Test(sentence, marks_threads_and_no_other_numbers) {
    bp_sentence sentence;
    bp_sentence_print(&sentence, "{} of {}{[ ({})]} at {}",
                      BP_ARGUMENTS(BP_COUNT(12), thread, BP_TEXT(""), cat));
    cr_assert(eq(sz, sentence.thread_count, 2));
    for (size_t i = 0; i < 2; i++) {
        const char *at = sentence.text + sentence.threads[i].at;
        const char *id = i == 0 ? "12 \"net\"" : "7), which";
        cr_expect(eq(int, strncmp(at, id, strlen(id)), 0));
        cr_expect(eq(sz, sentence.threads[i].byte_count, i == 0 ? 2 : 1));
        cr_expect(eq(u64, sentence.threads[i].id, i == 0 ? 12 : 7));
    }
}

Test(sentence, cuts_a_long_text_in_its_middle) {
    const char *path = "/srv/quite/a/long/path/to/app.log";
    cr_expect(eq(str, print("{}", BP_ARGUMENTS(BP_CUT_TEXT(path, 18))), "/srv/\u2026to/app.log"));
    cr_expect(eq(str, print("{}", BP_ARGUMENTS(BP_CUT_TEXT(path, strlen(path)))), (char *)path));
    /* Neither half of a character is left. */
    path = "/srv/\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9.log";
    cr_expect(eq(str, print("{}", BP_ARGUMENTS(BP_CUT_TEXT(path, 17))),
                 "/srv\u2026\u00e9\u00e9\u00e9.log"));
    cr_expect(eq(str, print("{}", BP_ARGUMENTS(BP_CUT_TEXT(path, 2))), "og"));
    cr_expect(eq(str, print("a{[ in {}]}", BP_ARGUMENTS(BP_CUT_TEXT("", 18))), "a"));
}

Test(sentence, keeps_the_end_of_a_line_that_is_too_long) {
    char line[4096];
    static const char end[] = "): Assertion `count > 0' failed.";
    memset(line, 'a', sizeof line);
    memcpy(line + sizeof line - sizeof end, end, sizeof end);
    const char *text =
        print("its last words: {}{[, and {} more]}", BP_ARGUMENTS(BP_TEXT(line), BP_COUNT(2)));
    cr_expect(ne(ptr, (void *)strstr(text, "a\u2026a"), NULL));
    cr_expect(ne(ptr, (void *)strstr(text, "): Assertion `count > 0' failed., and 2 more"), NULL));
}

Test(sentence, marks_where_it_is_too_long) {
    char text[BP_SENTENCE_TEXT_BYTES + 1];
    bp_sentence sentence;
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = '\0';
    memcpy(text + BP_SENTENCE_TEXT_BYTES - 5, "\u00e9", 2); /* where the sentence ends */
    bp_sentence_print(&sentence, "{}{}b{}", BP_ARGUMENTS(BP_TEXT(text), BP_TEXT(text), thread));
    cr_expect(eq(sz, sentence.length, BP_SENTENCE_BYTES - 2));
    cr_expect(eq(sz, strlen(sentence.text), sentence.length));
    cr_expect(eq(str, sentence.text + sentence.length - 6, "aaa\u2026"));
    cr_expect(eq(sz, sentence.thread_count, 0));
}
