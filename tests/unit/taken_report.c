#include "unit/taken_report.h"
#include "unit/unit.h"

temp_dir dir;
char path[BUGPACK_REPORT_PATH_BYTES];

void setup(void) {
    cr_assert(temp_dir_make(&dir));
}

void teardown(void) {
    temp_dir_remove(&dir);
}

void take(bugpack *session, const char *description, bugpack_report_result *ret_result) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    request.description = description;
    cr_assert(zero(int, bugpack_report(session, &request, &result)), "%s", result.error.message);
    (void)snprintf(path, sizeof path, "%s", result.path);
    if (ret_result != NULL) {
        *ret_result = result;
    }
}
