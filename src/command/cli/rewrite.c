#include "cli/rewrite.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/status.h"
#include "cli/destination.h"
#include "cli/event.h"
#include "cli/output.h"
#include "cli/publish.h"

/* Appends a name to a directory, which is freed. */
static bugpack_status join(char **path, const char *name, bugpack_error *error) {
    char *joined = NULL;
    bool is_joined = asprintf(&joined, "%s/%s", *path, name) >= 0;
    free(*path);
    *path = is_joined ? joined : NULL;
    return is_joined ? BUGPACK_OK : bp_fail_memory(error, "name a report");
}

/* `streamed_dir` is NULL, or where the report is written for standard output; then it gets the
 * path. */
static bugpack_status write_again(const bp_cli_rewriting *rewriting, const char *streamed_dir,
                                  char **ret_path, uint64_t *ret_count, bugpack_error *error) {
    bp_rewrite_request request = rewriting->request;
    char *output = NULL, name[256];
    bugpack_status status = bp_file_absolute_path(
        streamed_dir != NULL ? streamed_dir : rewriting->output_path, &output, error);
    if (status == BUGPACK_OK && streamed_dir != NULL) {
        status = join(&output, "report.zip", error);
    }
    if (status == BUGPACK_OK) {
        request.output_path = output;
        request.hook.call = bp_cli_publish_call(false);
        status = bp_rewrite_report(&request, name, sizeof name, ret_count, error);
    }
    if (status == BUGPACK_OK) {
        *strrchr(output, '/') = '\0';
        status = join(&output, name, error);
    }
    if (status == BUGPACK_OK) {
        *ret_path = output;
        output = NULL;
    }
    free(output);
    return status;
}

static void print_written(const bp_cli_rewriting *rewriting, const char *written, uint64_t count) {
    if (!rewriting->as_json) {
        (void)printf("%s\n", written);
        return;
    }
    BP_CLI_PRINT_EVENT(stdout, rewriting->event, 0, {"path", BP_CLI_TEXT, written, 0},
                       {"from", BP_CLI_TEXT, rewriting->request.path, 0},
                       {rewriting->counted, BP_CLI_NUMBER, NULL, count});
}

bp_cli_exit bp_cli_rewrite_fail(bool as_json, const char *path, const bugpack_error *error) {
    bp_cli_exit result = bp_cli_say_error(error);
    if (as_json) {
        bp_cli_print_failed(stdout, "failed", path, error->message);
    }
    return result;
}

bp_cli_exit bp_cli_rewrite(const bp_cli_rewriting *rewriting) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    char *streamed_dir = NULL, *written = NULL;
    bp_cli_exit result;
    bool is_streamed = bp_cli_is_streamed(rewriting->output_path);
    if (is_streamed && (streamed_dir = bp_cli_streamed_begin(&result)) == NULL) {
        return result;
    }
    uint64_t count = 0;
    bugpack_status status = write_again(rewriting, streamed_dir, &written, &count, &error);
    if (status == BUGPACK_OK) {
        bp_cli_say("%" PRIu64 " %s", count, rewriting->words);
        result = BP_CLI_COMPLETE;
    } else {
        result = bp_cli_rewrite_fail(rewriting->as_json, rewriting->request.path, &error);
    }
    if (is_streamed && !bp_cli_streamed_end(streamed_dir, written)) {
        result = BP_CLI_FAILED;
    } else if (!is_streamed && status == BUGPACK_OK) {
        print_written(rewriting, written, count);
        result = bp_cli_finish_output();
    }
    free(written);
    return result;
}
