#include "quick_session.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

bugpack_options quick_options(const temp_dir *dir) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "viewer";
    options.report_dir = dir->path;
    options.sample_window_ms = 20;
    options.stacks = BUGPACK_STACKS_NONE; /* a tenth of a second for each report */
    options.history_interval_ms = BUGPACK_OFF;
    return options;
}

bugpack *open_session(const bugpack_options *options) {
    bugpack *session = NULL;
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(zero(int, (int)bugpack_open(options, &session, &error)), "%s", error.message);
    return session;
}
