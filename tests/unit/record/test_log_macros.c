/* The level is a host's to define; this one compiles warnings and more. */
#define BUGPACK_LOG_COMPILE_LEVEL BUGPACK_LEVEL_WARN

#include "unit/logged_session.h"

static unsigned evaluated_count;

static unsigned next(void) {
    return ++evaluated_count;
}

static void log_at_every_level(void) {
    BUGPACK_LOG_TRACE(session, "c", "trace %u", next());
    BUGPACK_LOG_DEBUG(session, "c", "debug %u", next());
    BUGPACK_LOG_INFO(session, "c", "info %u", next());
    BUGPACK_LOG_WARN(session, "c", "warn %u", next());
    BUGPACK_LOG_ERROR(session, "c", "error %u", next());
    BUGPACK_LOG_FATAL(session, NULL, "fatal");
}

TestSuite(log_macros, .init = logged_setup, .fini = teardown);

Test(log_macros, evaluate_and_log_only_from_the_compiled_level_on) {
    log_at_every_level();
    cr_assert(eq(uint, evaluated_count, 2u));
    expect_logged("warn c \"warn 1\"\nerror c \"error 2\"\nfatal - \"fatal\"\n");
}

/* The level counts where a macro is used. */
#undef BUGPACK_LOG_COMPILE_LEVEL
#define BUGPACK_LOG_COMPILE_LEVEL BUGPACK_LEVEL_OFF

Test(log_macros, vanish_altogether_but_stay_expressions) {
    evaluated_count = 0;
    bugpack_session *nobody = NULL;
    bool is_bad = true;
    if (is_bad)
        BUGPACK_LOG_FATAL(nobody, NULL, "%u", next());
    else
        BUGPACK_LOG_ERROR(nobody, NULL, "%u", next());
    is_bad ? BUGPACK_LOG_WARN(nobody, NULL, "%u", next()) : (void)0;
    cr_assert(zero(uint, evaluated_count));
}

#undef BUGPACK_LOG_COMPILE_LEVEL
#define BUGPACK_LOG_COMPILE_LEVEL 0

Test(log_macros, take_the_number_of_a_level_too) {
    evaluated_count = 0;
    log_at_every_level(); /* compiled above, for warnings */
    BUGPACK_LOG_TRACE(session, "c", "%u", next());
    cr_assert(eq(uint, evaluated_count, 3u));
    expect_logged("warn c \"warn 1\"\nerror c \"error 2\"\nfatal - \"fatal\"\n"
                  "trace c \"3\"\n");
}

Test(log_macros, do_not_evaluate_what_the_session_drops) {
    evaluated_count = 0;
    BUGPACK_LOG_INFO((bugpack_session *)NULL, "c", "%u", next());
    bugpack_log_set_level(session, BUGPACK_LEVEL_ERROR);
    BUGPACK_LOG_WARN(session, "c", "%u", next());
    BUGPACK_LOG_ERROR(session, "c", "%u", next());
    cr_assert(eq(uint, evaluated_count, 1u));
    expect_logged("error c \"1\"\n");
}
