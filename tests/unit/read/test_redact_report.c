/*
 * Which rules a report is redacted with, and what says so. Secrets through every input:
 * cli/planted.
 */
#include "unit/quick_session.h"

SESSION_SUITE(redact_report);

Test(redact_report, has_no_secret_in_the_name_of_its_file) {
    options.app_name = "viewer";
    options.pedantic.is_enabled = true;
    options.pedantic.dir = dir.path;
    open_session();
    bugpack_gap(session, "main:unimpl:password=hunter2hunter2");
    close_and_find();
    cr_expect(strstr(taken.path, "hunter2") == NULL, "%s", taken.path);
    cr_expect(strstr(taken.path, "REDACTED-password-") != NULL, "%s", taken.path);
    cr_expect(not(holds("metadata.json", "hunter2")));
    cr_expect(not(holds("manifest.json", "hunter2")));
}

Test(redact_report, says_where_it_is_not_redacted) {
    options.redaction.mode = BUGPACK_REDACT_NEVER;
    open_session();
    take_described("password=hunter2");
    cr_expect(holds("metadata.json", "password=hunter2"));
    cr_expect(holds("manifest.json", "\"redacted\": false,"));
    cr_expect(
        eq(int, bugpack_redact_add(session, "[a]\npattern = b\n", &failure), BUGPACK_ERR_INVALID));
}

Test(redact_report, applies_the_rules_of_the_host) {
    options.redaction.rules = "[ticket]\npattern = TKT-[0-9]+\n";
    open_session();
    cr_expect(
        eq(int, bugpack_redact_add(session, "[x]\npattern = (\n", &failure), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_redact_add(session, NULL, &failure), BUGPACK_ERR_INVALID));
    cr_expect(eq(int, bugpack_redact_add(session, "[room]\npattern = room [0-9]+\n", &failure), 0));
    take_described("TKT-12345 of room 77");
    cr_expect(not(holds("metadata.json", "12345")));
    cr_expect(not(holds("metadata.json", "room 77")));
    cr_expect(holds("manifest.json", "\"rule\": \"ticket\","));
    bugpack_close(session);
    options.redaction.rules = "nonsense";
    cr_expect(eq(int, bugpack_open(&options, &session, &failure), BUGPACK_ERR_INVALID));
    cr_expect(eq(str, failure.message, "redaction_rules, line 1: expected \"key = value\""));
}

static void log_ticket(void) {
    bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "TKT-12345");
}

Test(redact_report, of_a_dead_session_has_its_rules) {
    options.redaction.rules = "[ticket]\npattern = TKT-[0-9]+\n";
    leave_dead_session(log_ticket);
    recover_and_find();
    cr_expect(not(holds("logs.jsonl", "TKT-12345")));
    cr_expect(holds("manifest.json", "\"rule\": \"ticket\","));
}

Test(redact_report, of_a_dead_session_without_rules_has_none) {
    options.redaction.mode = BUGPACK_REDACT_NEVER;
    leave_dead_session(log_ticket);
    recover_and_find();
    cr_expect(holds("logs.jsonl", "TKT-12345"));
    cr_expect(holds("manifest.json", "\"redacted\": false,"));
}
