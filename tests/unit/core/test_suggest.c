#include "base/suggest.h"
#include "unit/unit.h"

static const char *const names[] = {"capture",    "diff",         "heap",         "output",
                                    "output-dir", "threads.json", "process.json", "redact"};

static void expect(const char *word, const char *wanted) {
    bp_suggestion near = {.word = word};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bp_suggest(&near, names[i]);
    }
    const char *found = near.name;
    if (wanted == NULL) {
        cr_expect(eq(ptr, found, NULL), "%s: %s", word, found);
    } else {
        cr_expect(found != NULL && strcmp(found, wanted) == 0, "%s: %s", word, found);
    }
}

Test(suggest, finds_what_was_mistyped) {
    static const char *const cases[][2] = {{"captrue", "capture"},
                                           {"capure", "capture"},
                                           {"capturee", "capture"},
                                           {"haep", "heap"},
                                           {"dif", "diff"},
                                           {"ouput", "output"},
                                           {"outputdir", "output-dir"},
                                           {"thread.json", "threads.json"},
                                           {"redcat", "redact"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        expect(cases[i][0], cases[i][1]);
    }
}

Test(suggest, is_silent_where_nothing_is_near) {
    static const char *const words[] = {"", "x", "frobnicate", "heat-pumps", "json"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        expect(words[i], NULL);
    }
    char longest[512];
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    expect(longest, NULL);
}
