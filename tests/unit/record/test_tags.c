#include "report/tags.h"

#include "unit/quick_session.h"

SESSION_SUITE(tags);

Test(tags, are_in_the_metadata_as_of_the_trigger) {
    options.sample_window_ms = 200;
    cr_assert(zero(int, bugpack_open(&options, &session, NULL)));
    cr_assert(zero(int, bugpack_set_tag(session, "gpu", "none", NULL)));
    cr_assert(zero(int, bugpack_set_tag(session, "server.version", "7 \"beta\"\xff", NULL)));
    cr_assert(zero(int, bugpack_set_tag(session, "gone", "x", NULL)));
    cr_assert(zero(int, bugpack_set_tag(session, "gone", NULL, NULL)));
    cr_assert(zero(int, bugpack_set_tag(session, "gpu", "llvmpipe", NULL)));
    cr_assert(zero(int, bugpack_report_async(session, NULL, NULL, NULL, NULL)));
    cr_assert(zero(int, bugpack_set_tag(session, "gpu", "after the trigger", NULL)));
    close_and_find();
    cr_expect(holds("metadata.json", "  \"tags\": {\n"
                                     "    \"server.version\": \"7 \\\"beta\\\"\xEE\xBF\xBF\",\n"
                                     "    \"gpu\": \"llvmpipe\"\n"
                                     "  }"));
}

Test(tags, refuse_bad_keys_and_too_many) {
    bp_tags tags;
    char key[BUGPACK_TAG_KEY_MAX_BYTES + 2];
    bp_tags_init(&tags);
    memset(key, 'k', sizeof key - 1);
    key[sizeof key - 1] = '\0';
    const char *const bad[] = {NULL, "", "a b", "\xC3\xA4", "a/b", key};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(eq(int, (int)bp_tags_set(&tags, bad[i], "x", NULL), BUGPACK_ERR_INVALID));
    }
    key[BUGPACK_TAG_KEY_MAX_BYTES] = '\0';
    cr_expect(zero(int, (int)bp_tags_set(&tags, key, "", NULL)));
    for (unsigned i = 1; i < BUGPACK_TAGS_MAX; i++) {
        (void)snprintf(key, sizeof key, "k%u", i);
        cr_expect(zero(int, (int)bp_tags_set(&tags, key, "x", NULL)));
    }
    cr_expect(eq(int, (int)bp_tags_set(&tags, "more", "x", NULL), BUGPACK_ERR_LIMIT));
    cr_expect(zero(int, (int)bp_tags_set(&tags, "k1", "changed", NULL)));
    cr_expect(zero(int, (int)bp_tags_set(&tags, "k1", NULL, NULL)));
    cr_expect(zero(int, (int)bp_tags_set(&tags, "never.set", NULL, NULL)));
    cr_expect(zero(int, (int)bp_tags_set(&tags, "more", "x", NULL)));
    bp_tags_release(&tags);
}

Test(tags, cut_a_value_between_characters) {
    bp_tags tags;
    char value[BUGPACK_TAG_VALUE_MAX_BYTES + 3];
    bp_tags_init(&tags);
    memset(value, 'v', sizeof value - 1);
    memcpy(value + BUGPACK_TAG_VALUE_MAX_BYTES - 1, "\xC3\xA4\xC3", 4);
    cr_assert(zero(int, (int)bp_tags_set(&tags, "k", value, NULL)));
    bp_tag_set *set = bp_tags_hold(&tags);
    cr_expect(eq(sz, strlen(set->tags[0].value), BUGPACK_TAG_VALUE_MAX_BYTES - 1));
    bp_tags_release(&tags);
    cr_expect(eq(sz, set->count, 1), "a set outlives the tags");
    bp_tag_set_drop(set);
}

Test(tags, are_none_without_a_session) {
    cr_expect(eq(int, bugpack_set_tag(NULL, "k", "v", NULL), BUGPACK_ERR_INVALID));
    cr_expect(eq(ptr, bp_tags_hold(NULL), NULL));
    bp_tag_set_drop(NULL);
}
