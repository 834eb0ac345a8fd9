/*
 * The level of a session: asked for before a message is made, and changed while it runs.
 */
#include <sys/wait.h>

#include "unit/logged_session.h"

TestSuite(log_level, .init = logged_setup, .fini = teardown);

Test(log_level, is_what_the_options_say_until_it_is_changed) {
    cr_expect(bugpack_log_wants(session, BUGPACK_LEVEL_TRACE));
    bugpack_log_set_level(session, BUGPACK_LEVEL_WARN);
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_INFO)));
    cr_expect(bugpack_log_wants(session, BUGPACK_LEVEL_WARN));
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "dropped");
    bugpack_log_bytes(session, BUGPACK_LEVEL_WARN, NULL, "kept", 4);
    bugpack_log_bytes(session, BUGPACK_LEVEL_WARN, NULL, NULL, 4);
    bugpack_log_set_level(session, BUGPACK_LEVEL_TRACE);
    bugpack_log(session, BUGPACK_LEVEL_TRACE, NULL, "kept again");
    expect_logged("warn - \"kept\"\nwarn - \"\"\ntrace - \"kept again\"\n");
}

Test(log_level, nothing_drops_even_what_is_fatal) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "before");
    bugpack_log_set_level(session, BUGPACK_LEVEL_OFF);
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_FATAL)));
    bugpack_log(session, BUGPACK_LEVEL_FATAL, NULL, "after");
    expect_logged("info - \"before\"\n");
}

Test(log_level, a_number_that_is_no_level_changes_nothing_and_is_not_wanted) {
    bugpack_log_set_level(session, BUGPACK_LEVEL_INFO);
    bugpack_log_set_level(session, (bugpack_level)8);
    bugpack_log_set_level(session, (bugpack_level)-1);
    cr_expect(bugpack_log_wants(session, BUGPACK_LEVEL_INFO));
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_DEBUG)));
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_OFF)));
    bugpack_log(session, BUGPACK_LEVEL_OFF, NULL, "no level");
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_DEFAULT)));
    bugpack_log(session, BUGPACK_LEVEL_DEFAULT, NULL, "no level");
    expect_logged("");
}

Test(log_level, nothing_is_wanted_without_a_session_or_a_log) {
    bugpack_close(session);
    options.recorder.log_ring_bytes = BUGPACK_OFF;
    open_session();
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_FATAL)));
    bugpack_log_set_level(session, BUGPACK_LEVEL_TRACE);
    cr_expect(not(bugpack_log_wants(session, BUGPACK_LEVEL_FATAL)));
    bugpack_log_set_level(NULL, BUGPACK_LEVEL_TRACE);
    cr_expect(not(bugpack_log_wants(NULL, BUGPACK_LEVEL_FATAL)));
}

Test(log_level, a_forked_child_wants_nothing_of_its_parents_session) {
    pid_t child = fork();
    cr_assert(ge(int, child, 0));
    if (child == 0) {
        bugpack_log_set_level(session, BUGPACK_LEVEL_OFF);
        _exit(bugpack_log_wants(session, BUGPACK_LEVEL_FATAL) ? 1 : 0);
    }
    int status = -1;
    cr_assert(eq(int, waitpid(child, &status, 0), child));
    cr_expect(zero(int, status));
    bugpack_log(session, BUGPACK_LEVEL_INFO, NULL, "unchanged");
    expect_logged("info - \"unchanged\"\n");
}
