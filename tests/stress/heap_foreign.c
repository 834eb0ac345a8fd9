/*
 * A host that brings a malloc of its own, which tells nothing: no numbers of the C library's are
 * given out for it, and the ledger says what was found.
 */
#include <bugpack/bugpack.h>
#include <bugpack/heap_state.h>

#include <string.h>

#include "support/check.h"
#include "support/failing_malloc.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

int main(void) {
    if (!failing_malloc_is_available()) {
        SKIP("a sanitizer's allocator cannot be replaced");
    }
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bugpack_heap_state_read(&state, &error) == BUGPACK_ERR_UNSUPPORTED);
    CHECK(strstr(error.message, "tells nothing of its heap") != NULL);
    CHECK(state.mapped_bytes == BUGPACK_HEAP_UNKNOWN && state.allocator[0] == '\0');

    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "foreign";
    options.report_dir = dir.path;
    options.sample_window_ms = 1;
    options.recorder.is_in_memory = true;
    bugpack_session *session = NULL;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
    CHECK(result.missing_count == 0);
    CHECK(!report_entry_contains(result.path, "heap-state.json", ""));
    CHECK(report_entry_contains(result.path, "manifest.json", "\"status\": \"omitted\""));
    CHECK(report_entry_contains(result.path, "manifest.json", "tells nothing of its heap"));
    bugpack_close(session);
    temp_dir_remove(&dir);
    (void)printf("%s\n", error.message);
    return 0;
}
