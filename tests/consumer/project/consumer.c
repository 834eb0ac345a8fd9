/*
 * The smallest host: it has nothing but the installed headers and library. Its one argument is a
 * directory for reports.
 */
#include <stdio.h>
#include <string.h>

#include <bugpack/bugpack.h>

static int fail(const char *step, const bugpack_error *error) {
    (void)fprintf(stderr, "consumer: %s: %s (%s)\n", step, error->message,
                  bugpack_status_name(error->status));
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 2) {
        (void)fprintf(stderr, "usage: consumer DIRECTORY\n");
        return 2;
    }
    if (strcmp(bugpack_version(), BUGPACK_VERSION) != 0) {
        (void)fprintf(stderr, "headers %s, library %s\n", BUGPACK_VERSION, bugpack_version());
        return 1;
    }
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_session *session = NULL;
    options.app_name = "consumer";
    options.report_dir = argv[1];
    options.sample_window_ms = 10;
    if (bugpack_open(&options, &session, &error) != BUGPACK_OK) {
        return fail("open", &error);
    }
    bugpack_log(session, BUGPACK_LEVEL_INFO, "main", "hello from %s", argv[0]);
    bugpack_log(session, BUGPACK_LEVEL_WARN, NULL, "nothing but a format");
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_status status = bugpack_report(session, NULL, &result, NULL);
    bugpack_close(session);
    if (status != BUGPACK_OK) {
        return fail("report", &result.error);
    }
    (void)printf("bugpack %s wrote %s\n", bugpack_version(), result.path);
    return 0;
}
