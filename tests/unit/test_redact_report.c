/*
 * Which rules a report is redacted with, and what says so. Secrets through every input:
 * cli/planted.
 */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/report_reader.h"
#include "unit/quick_session.h"
#include "unit/unit.h"

static void report(bugpack *session, const char *description,
                   char path[BUGPACK_REPORT_PATH_BYTES]) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    request.description = description;
    cr_assert(eq(int, bugpack_report(session, &request, &result), BUGPACK_OK), "%s",
              result.error.message);
    (void)snprintf(path, BUGPACK_REPORT_PATH_BYTES, "%s", result.path);
}

static temp_dir dir;

static void setup(void) {
    cr_assert(temp_dir_make(&dir));
}

static void teardown(void) {
    temp_dir_remove(&dir);
}

TestSuite(redact_report, .init = setup, .fini = teardown);

Test(redact_report, has_no_secret_in_the_name_of_its_file) {
    char path[BUGPACK_REPORT_PATH_BYTES];
    bugpack_options options = quick_options(&dir);
    options.app_name = "viewer";
    options.pedantic = true;
    options.pedantic_dir = dir.path;
    bugpack *session = open_session(&options);
    bugpack_gap(session, "main:unimpl:password=hunter2hunter2");
    bugpack_close(session);
    cr_assert(report_find_only(&dir, path, sizeof path));
    cr_expect(strstr(path, "hunter2") == NULL, "%s", path);
    cr_expect(strstr(path, "REDACTED-password-") != NULL, "%s", path);
    cr_expect(not(report_entry_contains(path, "metadata.json", "hunter2")));
    cr_expect(not(report_entry_contains(path, "manifest.json", "hunter2")));
}

Test(redact_report, says_where_it_is_not_redacted) {
    char path[BUGPACK_REPORT_PATH_BYTES];
    bugpack_options options = quick_options(&dir);
    options.without_redaction = true;
    bugpack *session = open_session(&options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    report(session, "password=hunter2", path);
    cr_expect(report_entry_contains(path, "metadata.json", "password=hunter2"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"redacted\": false,"));
    cr_expect(
        eq(int, bugpack_redact_add(session, "[a]\npattern = b\n", &error), BUGPACK_ERR_INVALID));
    bugpack_close(session);
}

Test(redact_report, applies_the_rules_of_the_host) {
    char path[BUGPACK_REPORT_PATH_BYTES];
    bugpack_options options = quick_options(&dir);
    options.redaction_rules = "[ticket]\npattern = TKT-[0-9]+\n";
    bugpack *session = open_session(&options);
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_expect(
        eq(int, bugpack_redact_add(session, "[x]\npattern = (\n", &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_redact_add(session, NULL, &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_redact_add(session, "[room]\npattern = room [0-9]+\n", &error), 0));
    report(session, "TKT-12345 of room 77", path);
    cr_expect(not(report_entry_contains(path, "metadata.json", "12345")));
    cr_expect(not(report_entry_contains(path, "metadata.json", "77 ")));
    cr_expect(report_entry_contains(path, "manifest.json", "\"rule\": \"ticket\","));
    bugpack_close(session);
    options.redaction_rules = "nonsense";
    cr_expect(eq(int, bugpack_open(&options, &session, &error), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, error.message, "redaction_rules, line 1: expected \"key = value\""));
}

/* A host that is killed; what it logged is recovered by this process. */
static void check_recovered(bool is_off, char *path, size_t path_bytes) {
    int ready[2];
    char byte;
    bugpack_options options = quick_options(&dir);
    options.recorder_dir = dir.path;
    options.recorder_in_memory = false;
    options.without_redaction = is_off;
    options.redaction_rules = is_off ? NULL : "[ticket]\npattern = TKT-[0-9]+\n";
    cr_assert(pipe(ready) == 0);
    pid_t host = fork();
    if (host == 0) {
        bugpack *session = NULL;
        if (bugpack_open(&options, &session, NULL) == BUGPACK_OK) {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "TKT-12345");
            (void)!write(ready[1], "", 1);
        }
        (void)pause();
    }
    cr_assert(read(ready[0], &byte, 1) == 1);
    (void)kill(host, SIGKILL);
    (void)waitpid(host, NULL, 0);
    cr_assert(
        bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                   .recorder_dir = dir.path,
                                                   .report_dir = dir.path},
                        NULL) == BUGPACK_OK);
    cr_assert(report_find_only(&dir, path, path_bytes));
    (void)close(ready[0]);
    (void)close(ready[1]);
}

Test(redact_report, of_a_dead_session_has_its_rules) {
    char path[BUGPACK_REPORT_PATH_BYTES];
    check_recovered(false, path, sizeof path);
    cr_expect(not(report_entry_contains(path, "logs.jsonl", "TKT-12345")));
    cr_expect(report_entry_contains(path, "manifest.json", "\"rule\": \"ticket\","));
}

Test(redact_report, of_a_dead_session_without_rules_has_none) {
    char path[BUGPACK_REPORT_PATH_BYTES];
    check_recovered(true, path, sizeof path);
    cr_expect(report_entry_contains(path, "logs.jsonl", "TKT-12345"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"redacted\": false,"));
}
