/*
 * before_publish: it sees the whole zip, and may refuse it.
 */
#include <sys/stat.h>

#include "unit/quick_session.h"

/* What a call does, and what it saw. */
typedef struct witness {
    bugpack_status returns;
    const char *sentence;
    unsigned calls;
    bool has_whole_zip;
    size_t names; /* in the directory, during the call */
    bugpack_session *cancels;
} witness;

static bugpack_status look(const bugpack_unpublished *report, void *context, bugpack_error *error) {
    witness *seen = context;
    struct stat facts;
    char bytes[4] = "";
    seen->calls++;
    seen->names = temp_dir_count(&dir);
    seen->has_whole_zip =
        fstat(report->zip_fd, &facts) == 0 && (uint64_t)facts.st_size == report->zip_bytes &&
        pread(report->zip_fd, bytes, 4, 0) == 4 && memcmp(bytes, "PK\3\4", 4) == 0;
    if (seen->cancels != NULL) {
        (void)bugpack_cancel(seen->cancels, 0, NULL);
    }
    if (seen->sentence != NULL) {
        (void)snprintf(error->message, sizeof error->message, "%s", seen->sentence);
    }
    return seen->returns;
}

SESSION_SUITE(publish);

static void open_with(witness *seen) {
    options.before_publish = look;
    options.before_publish_context = seen;
    open_session();
}

Test(publish, shows_the_whole_zip_before_it_has_a_name) {
    witness seen = {.returns = BUGPACK_OK};
    open_with(&seen);
    (void)try_report(NULL);
    cr_expect(eq(int, taken.status, BUGPACK_OK), "%s", taken.error.message);
    cr_expect(seen.calls == 1 && seen.has_whole_zip && seen.names == 0);
    cr_expect(holds("manifest.json", "\"complete\": true"));
}

Test(publish, leaves_nothing_of_a_refused_report) {
    witness seen = {.returns = BUGPACK_ERR_DENIED, .sentence = "not now"};
    open_with(&seen);
    (void)try_report(NULL);
    cr_expect(eq(int, taken.status, BUGPACK_ERR_DENIED));
    cr_expect(eq(str, taken.error.message, "not now"));
    seen.sentence = NULL;
    (void)try_report(NULL);
    cr_expect(ne(str, taken.error.message, ""));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
}

Test(publish, can_be_cancelled_meanwhile) {
    witness seen = {.returns = BUGPACK_OK};
    open_with(&seen);
    seen.cancels = session;
    (void)try_report(NULL);
    cr_expect(eq(int, taken.status, BUGPACK_ERR_CANCELLED));
    cr_expect(eq(sz, temp_dir_count(&dir), 0));
}

static void log_last_words(void) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "the last words");
}

Test(publish, keeps_a_dead_session_whose_report_is_refused) {
    witness seen = {.returns = BUGPACK_ERR_CANCELLED, .sentence = "no"};
    leave_dead_session(log_last_words);
    bugpack_recover_options recover = BUGPACK_RECOVER_OPTIONS_INIT;
    recover.recorder_dir = recover.report_dir = dir.path;
    recover.before_publish = look;
    recover.before_publish_context = &seen;
    cr_expect(eq(int, bugpack_recover(&recover, NULL), BUGPACK_OK));
    cr_expect(seen.calls == 1 && seen.has_whole_zip);
    cr_expect(not(report_find_only(&dir, taken.path, sizeof taken.path)));
    seen.returns = BUGPACK_OK;
    cr_expect(eq(int, bugpack_recover(&recover, NULL), BUGPACK_OK));
    find_only();
    cr_expect(holds("logs.jsonl", "the last words"));
}
