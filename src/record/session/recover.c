#include <stdlib.h>

#include "base/file.h"
#include "base/status.h"
#include "base/struct_size.h"
#include "model/fit.h"
#include "platform/thread.h"
#include "session/command.h"

bugpack_status bp_session_recover(const bugpack_recover_options *given,
                                  const bp_recover_calls *calls, bugpack_error *error) {
    static const bp_field limits[] = {
        BP_FIELD(bugpack_recover_options, min_free_bytes, (uint64_t)16 << 20, 0, UINT64_MAX),
        BP_FIELD(bugpack_recover_options, max_zip_bytes, 0, 0, UINT64_MAX)};
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    char *report_dir = NULL;
    bp_thread_hold hold;
    bp_thread_hold_begin(&hold);
    bugpack_status status = bp_struct_read(&bp_of_bugpack_recover_options, &options, given, error);
    if (status == BUGPACK_OK) {
        status = bp_struct_fill(&options, limits, sizeof limits / sizeof limits[0], error);
    }
    if (status == BUGPACK_OK && !bp_fit_is_limit(options.max_zip_bytes)) {
        status = bp_fail(error, BUGPACK_ERR_INVALID,
                         "max_zip_bytes must be BUGPACK_OFF or at least 64 KiB");
    }
    if (status == BUGPACK_OK && options.report_dir != NULL) {
        status = bp_file_absolute_path(options.report_dir, &report_dir, error);
    }
    if (status == BUGPACK_OK && report_dir != NULL) {
        /* So that a mistake in its name fails at once, and not once for each session. */
        int fd = -1;
        status = bp_file_open_directory(report_dir, false, &fd, error);
        bp_file_close(fd);
    }
    options.report_dir = report_dir;
    if (status == BUGPACK_OK) {
        status = bp_recover(&options, calls, error);
    }
    free(report_dir);
    bp_thread_hold_end(&hold);
    return status;
}

bugpack_status bugpack_recover(const bugpack_recover_options *options, bugpack_error *error) {
    static const bp_recover_calls no_calls = {NULL, NULL};
    return bp_session_recover(options, &no_calls, error);
}
