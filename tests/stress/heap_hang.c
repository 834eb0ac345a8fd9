/*
 * An allocator that hangs when it is asked costs the report its heap state and nothing else.
 */
#include <bugpack/bugpack.h>

#include <dlfcn.h>
#include <string.h>

#include "support/check.h"
#include "support/fake_mallctl.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

int main(void) {
    temp_dir dir;
    void *library = dlopen(BUGPACK_FAKES "/libfake_mallctl.so", RTLD_NOW | RTLD_GLOBAL);
    CHECK(library != NULL);
    fake_mallctl_control *fake = dlsym(library, "fake_mallctl");
    CHECK(fake != NULL);
    fake->hangs = 1;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "hang";
    options.report_dir = dir.path;
    options.sample_window_ms = 1;
    options.provider_timeout_ms = 1500;   /* for the others, on a busy machine */
    options.stacks = BUGPACK_STACKS_NONE; /* which take longer than that under a sanitizer */
    options.recorder_in_memory = true;
    bugpack *session = NULL;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    for (unsigned i = 0; i < 2; i++) {
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        CHECK(bugpack_report(session, NULL, &result) == BUGPACK_OK);
        CHECK(result.missing_count == 1);
        CHECK(strstr(result.missing, "heap-state.json: ") == result.missing);
        CHECK(report_entry_contains(result.path, "manifest.json", "\"status\": \"timed_out\""));
        CHECK(report_entry_contains(result.path, "process.json", "\"pid\""));
    }
    bugpack_close(session);
    temp_dir_remove(&dir);
    (void)printf("two reports beside an allocator that hangs\n");
    return 0;
}
