#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include <bugpack/recover.h>

#include "cli/destination.h"
#include "cli/event.h"
#include "cli/hand_over.h"
#include "cli/option.h"
#include "cli/output.h"
#include "cli/publish.h"
#include "cli/review.h"
#include "session/command.h"

typedef struct recover_options {
    const char *app;
    const char *output_dir;
    const char *send_to;
    uint64_t max_zip_bytes;
    bool with_hostname, is_reviewed, as_json;
} recover_options;

static const bp_cli_option option_rows[] = {
    BP_CLI_VALUE(recover_options, app, 0, "app", "NAME", "only the sessions of this program",
                 bp_cli_read_text, NULL),
    BP_CLI_VALUE(recover_options, output_dir, 'o', "output-dir", "DIR",
                 "the directory for the zips (default: the one that\neach session used)",
                 bp_cli_read_output_dir, NULL),
    BP_CLI_MAX_SIZE_OPTION(recover_options, max_zip_bytes),
    BP_CLI_FLAG(recover_options, with_hostname, 0, "hostname",
                "name this machine in the reports, also where a\nprogram did not ask for it"),
    BP_CLI_REVIEW_OPTION(recover_options, is_reviewed),
    BP_CLI_SEND_OPTION(recover_options, send_to),
    BP_CLI_FLAG(recover_options, as_json, 0, "json", "print each event as a JSON object in a line"),
    BP_CLI_OPTIONS_END};

/* The outcome of a recovery. */
typedef struct recovery {
    bp_cli_exit worst;
    const char *send_to;
    bool as_json;
    bool has_told;      /* something was said of a session */
    char searched[512]; /* ", "-separated */
} recovery;

static void print_report(const bugpack_report_result *result, void *context) {
    recovery *made = context;
    made->has_told = true;
    if (result->status != BUGPACK_OK) {
        if (made->as_json) {
            bp_cli_print_failed(stdout, "report-failed", NULL, result->error.message);
        }
        bp_cli_say("%s", result->error.message);
        made->worst = BP_CLI_FAILED;
        return;
    }
    if (made->as_json) {
        bp_cli_print_written(stdout, result->path, result->missing_count, result->not_searched);
    } else {
        (void)printf("%s\n", result->path);
    }
    bp_cli_say_unsearched(result);
    if (result->missing_count > 0) {
        bp_cli_say("%s: something is missing; its manifest.json says what", result->path);
        made->worst = made->worst == BP_CLI_COMPLETE ? BP_CLI_INCOMPLETE : made->worst;
    }
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_cli_hand_over(made->send_to, result->path, &error) != BUGPACK_OK) {
        bp_cli_say("%s: not sent: %s", result->path, error.message);
        made->worst = BP_CLI_FAILED;
    }
}

/* Not an error: it explains why there is no report. */
static void print_running(const bp_running_session *session, void *context) {
    recovery *made = context;
    const char *app = session->app_name[0] != '\0' ? session->app_name : session->name;
    made->has_told = true;
    if (made->as_json) {
        BP_CLI_PRINT_EVENT(stdout, "running", 0, {"app", BP_CLI_TEXT, session->app_name, 0},
                           {"session", BP_CLI_TEXT, session->name, 0},
                           {"pid", BP_CLI_ID, NULL, (uint64_t)session->pid});
    }
    if (session->pid > 0) {
        bp_cli_say("%s: still running, as process %lld; left alone", app, (long long)session->pid);
    } else {
        bp_cli_say("%s: still running; left alone", app);
    }
}

static void print_note(const bp_recover_note *note, void *context) {
    recovery *made = context;
    size_t used = strlen(made->searched);
    static const char *const events[] = {[BP_RECOVER_SEARCHED] = "searched",
                                         [BP_RECOVER_SKIPPED] = "skipped",
                                         [BP_RECOVER_UNSEEN] = "unseen",
                                         [BP_RECOVER_DROPPED] = "dropped"};
    if (made->as_json) {
        bool has_error = note->kind != BP_RECOVER_SEARCHED;
        bp_cli_print_failed(stdout, events[note->kind], note->path, has_error ? note->text : NULL);
    }
    switch (note->kind) {
    case BP_RECOVER_SEARCHED:
        (void)snprintf(made->searched + used, sizeof made->searched - used, "%s%s",
                       used > 0 ? ", " : "", note->path);
        break;
    case BP_RECOVER_SKIPPED:
        bp_cli_say("not searched: %s", note->text);
        break;
    case BP_RECOVER_UNSEEN:
    case BP_RECOVER_DROPPED:
        bp_cli_say("%s: %s", note->path, note->text);
        made->has_told = true;
        made->worst = BP_CLI_FAILED;
        break;
    }
}

static bp_cli_exit run(void *context, char **operands) {
    const recover_options *given = context;
    recovery made = {
        .worst = BP_CLI_COMPLETE, .send_to = given->send_to, .as_json = given->as_json};
    if (!bp_cli_review_prepare(given->is_reviewed, &made.worst) ||
        !bp_cli_hand_over_prepare(given->send_to, &made.worst)) {
        return made.worst;
    }
    /* It demangles the names of C++. A session loads it into no process itself. */
    (void)dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_recover_options options = BUGPACK_RECOVER_OPTIONS_INIT;
    options.recorder_dir = operands[0];
    options.report_dir = given->output_dir;
    options.app_name = given->app;
    options.on_report = print_report;
    options.context = &made;
    options.before_publish = bp_cli_publish_call(given->is_reviewed);
    options.with_hostname = given->with_hostname;
    options.max_zip_bytes = given->max_zip_bytes;
    const bp_recover_calls calls = {.on_running = print_running, .on_note = print_note};
    if (bp_session_recover(&options, &calls, &error) != BUGPACK_OK && made.worst != BP_CLI_FAILED) {
        return bp_cli_say_error(&error);
    }
    if (!made.has_told && made.searched[0] != '\0') {
        bp_cli_say("no dead session in %s", made.searched);
    }
    return bp_cli_finish_output() == BP_CLI_COMPLETE ? made.worst : BP_CLI_FAILED;
}

const bp_cli_command bp_cli_recover_command = {
    "recover",
    "write crash reports for sessions that died",
    "Usage: bugpack recover [OPTION]... [DIR]\n"
    "\n"
    "Write crash reports from the records of sessions that died, and print their\n"
    "paths. Sessions that are still running are left alone, and named on standard\n"
    "error. DIR is the directory of the sessions; by default all that a program may\n"
    "choose: $XDG_RUNTIME_DIR/bugpack, /run/bugpack (root), and\n"
    "/dev/shm/bugpack-UID; on macOS $TMPDIR/bugpack.\n",
    option_rows,
    "Exit status: 0 all recovered, or none there, 1 failed, or could not look,\n"
    "2 usage, 3 written but something is missing.\n",
    1,
    .run = run,
    .options_bytes = sizeof(recover_options)};
