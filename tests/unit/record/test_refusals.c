/*
 * The error of a refused call names the argument and the rule.
 */
#include <bugpack/bugpack.h>
#include <bugpack/sample.h>

#include "unit/quick_session.h"

SESSION_SUITE(refusals);

/* A call with one wrong argument, or of a session that is NULL or closed. */
typedef bugpack_status refused_call(bugpack_session *of, bugpack_error *error);

struct refusal {
    refused_call *call;
    bugpack_status status;
    const char *message;
};

static const char long_name[] = "0123456789012345678901234567890123456789012345678901234567890123x";

static int provide_nothing(bugpack_writer *writer, void *context) {
    (void)writer;
    (void)context;
    return 0;
}

static bugpack_status add_condition(bugpack_session *of, bugpack_error *error) {
    return bugpack_condition_add(of, "rss > 1G", error);
}

static bugpack_status open_channel_long(bugpack_session *of, bugpack_error *error) {
    bugpack_channel *channel = NULL;
    return bugpack_channel_open(of, long_name, NULL, &channel, error);
}

static bugpack_status open_channel_null(bugpack_session *of, bugpack_error *error) {
    bugpack_channel *channel = NULL;
    return bugpack_channel_open(of, NULL, NULL, &channel, error);
}

static bugpack_status disconnect_empty(bugpack_session *of, bugpack_error *error) {
    return bugpack_disconnect(of, "", NULL, NULL, error);
}

static bugpack_status open_watchdog(bugpack_session *of, bugpack_error *error) {
    bugpack_watchdog *watchdog = NULL;
    return bugpack_watchdog_open(of, "", 2000, &watchdog, error);
}

static bugpack_status open_watchdog_soon(bugpack_session *of, bugpack_error *error) {
    bugpack_watchdog *watchdog = NULL;
    return bugpack_watchdog_open(of, "ui", 99, &watchdog, error);
}

static bugpack_status open_watchdog_nowhere(bugpack_session *of, bugpack_error *error) {
    return bugpack_watchdog_open(of, "ui", 2000, NULL, error);
}

static bugpack_status provide_kind(bugpack_session *of, bugpack_error *error) {
    return bugpack_provide(of, "a.json", (bugpack_provider_kind)7, provide_nothing, NULL, error);
}

static bugpack_status provide_null(bugpack_session *of, bugpack_error *error) {
    return bugpack_provide(of, "a.json", BUGPACK_PROVIDE_JSON, NULL, NULL, error);
}

static bugpack_status provide_file_null(bugpack_session *of, bugpack_error *error) {
    return bugpack_provide_file(of, "a.log", NULL, BUGPACK_FILE_WHOLE, 0, error);
}

static bugpack_status provide_file_kind(bugpack_session *of, bugpack_error *error) {
    return bugpack_provide_file(of, "a.log", "a.log", (bugpack_file_kind)3, 0, error);
}

static bugpack_status redact_null(bugpack_session *of, bugpack_error *error) {
    return bugpack_redact_add(of, NULL, error);
}

static bugpack_status open_stream(bugpack_session *of, bugpack_error *error) {
    FILE *stream = bugpack_log_stream(of, BUGPACK_LEVEL_OFF, NULL, error);
    return stream == NULL && error != NULL ? error->status : BUGPACK_OK;
}

static bugpack_status sample_long(bugpack_session *of, bugpack_error *error) {
    char *json = NULL;
    (void)of;
    return bugpack_sample(0, 600001, &json, NULL, error);
}

static const struct refusal refusals[] = {
    {open_channel_long, BUGPACK_ERR_INVALID, "name must have at most 64 bytes"},
    {open_channel_null, BUGPACK_ERR_INVALID, "name is NULL"},
    {disconnect_empty, BUGPACK_ERR_INVALID, "channel must have 1 to 64 bytes, has 0"},
    {open_watchdog, BUGPACK_ERR_INVALID, "name must have 1 to 64 bytes, has 0"},
    {open_watchdog_soon, BUGPACK_ERR_INVALID, "limit_ms must be 100 to 86400000, is 99"},
    {open_watchdog_nowhere, BUGPACK_ERR_INVALID, "ret_watchdog is NULL"},
    {provide_kind, BUGPACK_ERR_INVALID, "kind: 7 is no bugpack_provider_kind"},
    {provide_null, BUGPACK_ERR_INVALID, "the provider of \"a.json\" is NULL"},
    {provide_file_null, BUGPACK_ERR_INVALID, "the path of \"a.log\" is NULL"},
    {provide_file_kind, BUGPACK_ERR_INVALID, "kind: 3 is no bugpack_file_kind"},
    {redact_null, BUGPACK_ERR_INVALID, "text is NULL"},
    {open_stream, BUGPACK_ERR_INVALID, "level: a record cannot have 7"},
    {sample_long, BUGPACK_ERR_INVALID, "window_ms must be at most 600000, is 600001"},
};

/* What a call says that it cannot do, of a session that takes no call. */
static const struct {
    refused_call *call;
    const char *what;
} calls[] = {
    {add_condition, "add a condition"},        {open_channel_null, "open a channel"},
    {disconnect_empty, "report a disconnect"}, {open_watchdog, "open a watchdog"},
    {provide_null, "register a provider"},     {provide_file_null, "register a file"},
    {redact_null, "add redaction rules"},      {open_stream, "open a log stream"},
};

Test(refusals, name_the_argument_and_the_rule) {
    open_session();
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        cr_expect(eq(int, refusals[i].call(session, &error), refusals[i].status), "row %zu", i);
        cr_expect(eq(int, error.status, refusals[i].status), "row %zu", i);
        cr_expect(eq(str, error.message, (char *)refusals[i].message), "row %zu", i);
        (void)refusals[i].call(session, NULL);
    }
}

static void expect_all(bugpack_session *of, bugpack_status status, const char *why) {
    for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++) {
        char expected[BUGPACK_ERROR_MESSAGE_BYTES];
        bugpack_error error = BUGPACK_ERROR_INIT;
        (void)snprintf(expected, sizeof expected, "cannot %s: %s", calls[i].what, why);
        cr_expect(eq(int, calls[i].call(of, &error), status), "%s", calls[i].what);
        cr_expect(eq(str, error.message, expected));
    }
}

Test(refusals, say_that_a_session_takes_no_calls) {
    open_session();
    bugpack_session *closed = session;
    bugpack_close(session);
    session = NULL;
    expect_all(NULL, BUGPACK_ERR_INVALID, "session is NULL");
    expect_all(closed, BUGPACK_ERR_CLOSED, "the session is closed");
}
