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

static bugpack_status disconnect_twice(bugpack_session *of, bugpack_error *error) {
    (void)bugpack_disconnect(of, "main", NULL, NULL, NULL);
    return bugpack_disconnect(of, "main", NULL, NULL, error);
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

static bugpack_status set_tag_empty(bugpack_session *of, bugpack_error *error) {
    return bugpack_set_tag(of, "", "x", error);
}

static bugpack_status set_tag_blank(bugpack_session *of, bugpack_error *error) {
    return bugpack_set_tag(of, "a b", "x", error);
}

static bugpack_status set_too_many_tags(bugpack_session *of, bugpack_error *error) {
    bugpack_status status = BUGPACK_OK;
    for (unsigned i = 0; status == BUGPACK_OK && i <= BUGPACK_TAGS_MAX; i++) {
        char key[8];
        (void)snprintf(key, sizeof key, "k%u", i);
        status = bugpack_set_tag(of, key, "x", error);
    }
    return status;
}

static bugpack_status cancel_all(bugpack_session *of, bugpack_error *error) {
    return bugpack_cancel(of, 0, error);
}

static bugpack_status cancel_one(bugpack_session *of, bugpack_error *error) {
    return bugpack_cancel(of, 7, error);
}

static bugpack_status flush(bugpack_session *of, bugpack_error *error) {
    return bugpack_flush(of, 0, error);
}

static bugpack_status flush_early(bugpack_session *of, bugpack_error *error) {
    bugpack_status status = bugpack_report_async(of, NULL, NULL, NULL, error);
    return status == BUGPACK_OK ? bugpack_flush(of, 0, error) : status;
}

static bugpack_status locate(bugpack_session *of, bugpack_error *error) {
    bugpack_recorder_location location = BUGPACK_RECORDER_LOCATION_INIT;
    return bugpack_recorder_locate(of, &location, error);
}

static bugpack_status locate_nothing(bugpack_session *of, bugpack_error *error) {
    return bugpack_recorder_locate(of, NULL, error);
}

static bugpack_status get_pedantic(bugpack_session *of, bugpack_error *error) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    return bugpack_pedantic_get(of, &state, error);
}

static bugpack_status get_pedantic_nothing(bugpack_session *of, bugpack_error *error) {
    return bugpack_pedantic_get(of, NULL, error);
}

static bugpack_status poll_events(bugpack_session *of, bugpack_error *error) {
    return bugpack_events_fd(of, error) < 0 && error != NULL ? error->status : BUGPACK_OK;
}

static bugpack_status install_crash_handler(bugpack_session *of, bugpack_error *error) {
    return bugpack_crash_handler_install(of, error);
}

static bugpack_status request(bugpack_session *of, const bugpack_report_request *with,
                              bugpack_error *error) {
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    bugpack_error same = BUGPACK_ERROR_INIT;
    bugpack_status status = bugpack_report_async(of, with, NULL, NULL, error);
    cr_expect(eq(int, bugpack_report(of, with, NULL, &same), status));
    if (error != NULL) {
        cr_expect(eq(str, same.message, error->message));
    }
    cr_expect(eq(int, bugpack_report(of, with, &result, NULL), status));
    cr_expect(eq(str, result.error.message, same.message));
    return status;
}

static bugpack_status report(bugpack_session *of, bugpack_error *error) {
    return request(of, NULL, error);
}

static bugpack_status report_long_text(bugpack_session *of, bugpack_error *error) {
    static char text[64 * 1024 + 2];
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    memset(text, 'x', sizeof text - 1);
    with.description = text;
    return request(of, &with, error);
}

static bugpack_status report_late(bugpack_session *of, bugpack_error *error) {
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    with.timeout_ms = UINT32_MAX;
    return request(of, &with, error);
}

static bugpack_status report_unretained(bugpack_session *of, bugpack_error *error) {
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    with.retained = 9;
    return request(of, &with, error);
}

static const uint32_t pixel = 0;

static bugpack_status report_region(bugpack_session *of, bugpack_error *error) {
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    with.region.width = 1;
    return request(of, &with, error);
}

static bugpack_status report_region_outside(bugpack_session *of, bugpack_error *error) {
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    const bugpack_picture picture = {.pixels = &pixel, .width = 1, .height = 1};
    with.screenshot = &picture;
    with.region = (bugpack_region){.x = 1, .width = 1, .height = 1};
    return request(of, &with, error);
}

static bugpack_status report_format(bugpack_session *of, bugpack_error *error) {
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    const bugpack_picture picture = {
        .pixels = &pixel, .width = 1, .height = 1, .format = (bugpack_pixel_format)4};
    with.screenshot = &picture;
    return request(of, &with, error);
}

static bugpack_status report_large(bugpack_session *of, bugpack_error *error) {
    bugpack_report_request with = BUGPACK_REPORT_REQUEST_INIT;
    const bugpack_picture picture = {.pixels = &pixel, .width = 16384, .height = 4097};
    with.screenshot = &picture;
    return request(of, &with, error);
}

static bugpack_status report_of_no_size(bugpack_session *of, bugpack_error *error) {
    bugpack_report_result result = {.struct_size = 3};
    return bugpack_report(of, NULL, &result, error);
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
    {set_tag_empty, BUGPACK_ERR_INVALID, "key must have 1 to 64 bytes, has 0"},
    {set_tag_blank, BUGPACK_ERR_INVALID,
     "key \"a b\" has a character that is not one of A-Z a-z 0-9 _ . -"},
    {set_too_many_tags, BUGPACK_ERR_LIMIT, "cannot set tag \"k64\": a session has at most 64"},
    {cancel_all, BUGPACK_ERR_NO_TICKET, "no report waits or runs"},
    {cancel_one, BUGPACK_ERR_NO_TICKET, "no report with the ticket 7 waits or runs"},
    {flush_early, BUGPACK_ERR_TIMEOUT, "reports are still under way after 0 ms"},
    {locate_nothing, BUGPACK_ERR_INVALID, "the bugpack_recorder_location is NULL"},
    {get_pedantic_nothing, BUGPACK_ERR_INVALID, "the bugpack_pedantic_state is NULL"},
    {report_long_text, BUGPACK_ERR_INVALID, "description must have at most 65536 bytes"},
    {report_late, BUGPACK_ERR_INVALID, "timeout_ms must be at most 4294967294"},
    {report_unretained, BUGPACK_ERR_NO_TICKET, "retained: no snapshot with the ticket 9 is free"},
    {report_region, BUGPACK_ERR_INVALID, "region needs a screenshot"},
    {report_region_outside, BUGPACK_ERR_INVALID, "region is empty, or outside of the screenshot"},
    {report_format, BUGPACK_ERR_INVALID, "format: 4 is no bugpack_pixel_format"},
    {report_large, BUGPACK_ERR_INVALID,
     "an image of 268500992 bytes: it must have at most 268435456"},
    {report_of_no_size, BUGPACK_ERR_INVALID,
     "the struct_size of bugpack_report_result is 3, which no version has: start from "
     "bugpack_report_result_init"},
    {sample_long, BUGPACK_ERR_INVALID, "window_ms must be at most 600000, is 600001"},
    {disconnect_twice, BUGPACK_ERR_BUSY,
     "no disconnect report was taken: another one is under way or was just written, or "
     "limits.disconnect_cap is reached"},
};

/* What a call says that it cannot do, of a session that takes no call. */
static const struct {
    refused_call *call;
    const char *what;
} calls[] = {
    {add_condition, "add a condition"},
    {open_channel_null, "open a channel"},
    {disconnect_empty, "report a disconnect"},
    {open_watchdog, "open a watchdog"},
    {provide_null, "register a provider"},
    {provide_file_null, "register a file"},
    {set_tag_empty, "set a tag"},
    {cancel_all, "cancel a report"},
    {flush, "wait for reports"},
    {locate, "locate the recorder"},
    {get_pedantic, "read the state of pedantic mode"},
    {poll_events, "poll for events"},
    {install_crash_handler, "install the crash handler"},
    {report, "take a report"},
    {redact_null, "add redaction rules"},
    {open_stream, "open a log stream"},
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
