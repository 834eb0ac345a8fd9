#include "send/envelope.h"

#include <stdio.h>
#include <string.h>

#include <bugpack/version.h>

#include "base/status.h"
#include "facts/facts.h"
#include "json/tree_reader.h"
#include "model/fields.h"

enum { line_max_bytes = 4 << 20 };

/* https://KEY@HOST/PATH/PROJECT becomes https://HOST/PATH/api/PROJECT/envelope/. */
static bugpack_status read_dsn(const char *dsn, bp_send_message *message, bugpack_error *error) {
    bp_url url;
    char path[BP_URL_BYTES];
    if (!bp_url_parse(dsn, &url)) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the DSN is malformed");
    }
    (void)snprintf(path, sizeof path, "%.*s", (int)url.path.bytes, url.path.at);
    char *project = strrchr(path, '/');
    if (project == NULL || project[1] == '\0') {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the DSN has no project");
    }
    *project++ = '\0';
    (void)bp_buffer_append(&message->texts[BP_SEND_URL], dsn,
                           url.is_https ? strlen("https://") : strlen("http://"));
    (void)bp_buffer_append(&message->texts[BP_SEND_URL], url.host.at,
                           (size_t)(url.path.at - url.host.at));
    (void)bp_buffer_printf(&message->texts[BP_SEND_URL], "%s/api/%s/envelope/", path, project);
    const char *key_end = memchr(url.user.at, ':', url.user.bytes);
    size_t key_bytes = key_end != NULL ? (size_t)(key_end - url.user.at) : url.user.bytes;
    return bp_buffer_printf(&message->texts[BP_SEND_AUTHORITY],
                            "X-Sentry-Auth: Sentry sentry_version=7, "
                            "sentry_client=bugpack/" BUGPACK_VERSION ", sentry_key=%.*s",
                            (int)key_bytes, url.user.at);
}

/* Appends the event, from the index line of the report. */
static bugpack_status add_event(const bp_json_tree *line, const bp_send_report *report,
                                bp_buffer *out, bugpack_error *error) {
    const char *app = bp_json_tree_text_or(line, "app", "?");
    const char *type = bp_json_tree_text_or(line, "report_type", "report");
    const char *finding = bp_json_tree_text(line, "finding");
    const char *version = bp_json_tree_text(line, "version");
    const char *id = bp_json_tree_value_text(bp_json_tree_rows(line, "finding_ids"));
    char release[200], title[200];
    bp_json json;
    (void)snprintf(title, sizeof title, "%s: %s", app, type);
    (void)snprintf(release, sizeof release, "%s@%s", app, version != NULL ? version : "");
    bp_json_begin_as(&json, BP_JSON_RECORD, out);
    bp_json_add_text(&json, "event_id", report->id);
    bp_json_add_text(&json, "timestamp", bp_json_tree_text(line, "triggered_at"));
    bp_json_add_text(&json, "platform", "native");
    bp_json_add_text(&json, "level", strcmp(type, "crash") == 0 ? "fatal" : "error");
    bp_json_add_text(&json, "logger", "bugpack");
    bp_json_add_text(&json, "release", version != NULL ? release : NULL);
    bp_model_add_known_text(&json, "server_name", bp_json_tree_text(line, "machine"));
    bp_json_object_begin(&json, "message");
    bp_json_add_text(&json, "formatted", finding != NULL ? finding : title);
    bp_json_object_end(&json);
    bp_json_array_begin(&json, "fingerprint");
    bp_json_add_text(&json, NULL, app);
    bp_json_add_text(&json, NULL, type);
    bp_json_add_text(&json, NULL, id != NULL ? id : bp_json_tree_text(line, "gap_key"));
    bp_json_array_end(&json);
    bp_json_object_begin(&json, "tags");
    bp_json_add_text(&json, "report_type", type);
    bp_json_add_text(&json, "os", bp_json_tree_text(line, "os"));
    bp_json_add_text(&json, "arch", bp_json_tree_text(line, "arch"));
    bp_json_object_end(&json);
    return bp_json_finish(&json, error);
}

/* Appends the headers and the event: what is before the zip. */
static bugpack_status add_items(const bp_send_report *report, const bp_buffer *event,
                                bp_buffer *out, bugpack_error *error) {
    bp_json json;
    (void)bp_buffer_printf(out, "{\"event_id\":\"%s\"}\n{\"type\":\"event\",\"length\":%zu}\n",
                           report->id, event->size - 1); /* without its newline */
    (void)bp_buffer_append(out, event->data, event->size);
    bp_json_begin_as(&json, BP_JSON_RECORD, out);
    bp_json_add_text(&json, "type", "attachment");
    bp_json_add_uint(&json, "length", report->bytes);
    bp_json_add_text(&json, "filename", report->name);
    bp_json_add_text(&json, "content_type", "application/zip");
    return bp_json_finish(&json, error);
}

bugpack_status bp_send_envelope_make(const bp_send_destination *destination,
                                     const bp_send_report *report, bp_send_message *message,
                                     bugpack_error *error) {
    char path[32];
    bp_buffer text, event;
    bp_json_tree *line = NULL;
    bp_buffer_init(&text, line_max_bytes);
    bp_buffer_init(&event, line_max_bytes);
    (void)snprintf(path, sizeof path, "/dev/fd/%d", report->fd);
    bugpack_status status = read_dsn(destination->url, message, error);
    if (status == BUGPACK_OK) {
        status = bp_index_line(path, report->bytes, &text, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_json_tree_read(bp_buffer_text(&text), text.size, &line, error);
    }
    if (status == BUGPACK_OK) {
        status = add_event(line, report, &event, error);
    }
    if (status == BUGPACK_OK) {
        status = add_items(report, &event, &message->texts[BP_SEND_BEFORE], error);
    }
    (void)bp_buffer_append_text(&message->texts[BP_SEND_TYPE],
                                "Content-Type: application/x-sentry-envelope");
    (void)bp_buffer_append_text(&message->texts[BP_SEND_AFTER], "\n");
    message->is_post = true;
    bp_json_tree_free(line);
    bp_buffer_release(&event);
    bp_buffer_release(&text);
    return status;
}
