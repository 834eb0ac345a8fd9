#include "send/deliver.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "base/status.h"
#include "json/tree_reader.h"
#include "send/message.h"

static bugpack_status put_into_dir(const char *path, const bp_send_report *report,
                                   bp_send_progress *progress, void *context,
                                   bp_send_result *result, bugpack_error *error) {
    char stem[sizeof report->name], name[sizeof report->name + 16];
    int dir_fd = -1;
    size_t length = strlen(report->name);
    bool has_extension = length > 4 && strcmp(report->name + length - 4, ".zip") == 0;
    (void)snprintf(stem, sizeof stem, "%.*s", (int)(has_extension ? length - 4 : length),
                   report->name);
    bugpack_status status = bp_file_open_directory(path, false, &dir_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_send_report_copy(report, dir_fd, path, stem, progress, context, name,
                                     sizeof name, error);
    }
    if (status == BUGPACK_OK) {
        (void)snprintf(result->text, sizeof result->text, "%s/%s", path, name);
    }
    bp_file_close(dir_fd);
    return status;
}

/* The text of `key`'s member in a JSON answer, or of S3's <Code>; "" where there is none. */
static void find_reason(const char *body, char *out, size_t out_bytes) {
    static const char *const keys[] = {"detail", "error", "message", "title"};
    bp_json_tree *tree = NULL;
    const char *found = NULL, *code = strstr(body, "<Code>");
    out[0] = '\0';
    if (code != NULL) {
        code += strlen("<Code>");
        (void)snprintf(out, out_bytes, "%.*s", (int)strcspn(code, "<"), code);
    } else if (bp_json_tree_read(body, strlen(body), &tree, NULL) == BUGPACK_OK) {
        for (size_t i = 0; i < sizeof keys / sizeof keys[0] && found == NULL; i++) {
            found = bp_json_tree_text(tree, keys[i]);
        }
        (void)snprintf(out, out_bytes, "%s", found != NULL ? found : "");
        bp_json_tree_free(tree);
    }
}

/* Judges an answer (RFC 9110): what says that the server, or the way to it, has trouble is tried
 * again. */
static void judge_answer(const bp_send_destination *destination, const bp_http_answer *answer,
                         bp_send_result *result) {
    char reason[200];
    long status = answer->status;
    bool is_sent = status >= 200 && status < 300;
    bool is_later = status == 408 || status == 429 || (status >= 500 && status < 600);
    result->http_status = status;
    result->is_down = status == 429 || status == 503;
    result->retry_after_secs = answer->has_retry_after ? answer->retry_after_secs : 0;
    if (is_sent) {
        result->outcome = BP_SEND_SENT;
        return;
    }
    result->outcome = is_later ? BP_SEND_LATER : BP_SEND_REFUSED;
    find_reason(answer->body, reason, sizeof reason);
    bool is_shown = reason[0] != '\0' && bp_send_destination_may_say(destination, reason);
    bool is_redirect = status >= 300 && status < 400;
    (void)snprintf(result->text, sizeof result->text, "the server answered %ld%s%s%s", status,
                   is_redirect ? ", a redirection that is not followed" : "", is_shown ? ": " : "",
                   is_shown ? reason : "");
}

static void judge_failure(const bp_send_destination *destination, bugpack_status status,
                          const bugpack_error *error, bp_send_result *result) {
    bool is_shown = bp_send_destination_may_say(destination, error->message);
    switch (status) {
    case BUGPACK_ERR_CANCELLED:
        result->outcome = BP_SEND_CANCELLED;
        break;
    case BUGPACK_ERR_INVALID:
        result->outcome = BP_SEND_REFUSED;
        break;
    default:
        result->outcome = BP_SEND_LATER;
        result->is_down = true;
    }
    (void)snprintf(result->text, sizeof result->text, "%s",
                   is_shown ? error->message : "the request failed");
}

static bugpack_status request(const bp_send_destination *destination, const bp_send_report *report,
                              bp_send_progress *progress, void *context, bp_http_answer *ret_answer,
                              bugpack_error *error) {
    bp_send_message message;
    const char *headers[BP_SEND_FIELD_MAX + BP_SEND_MESSAGE_HEADERS];
    bugpack_status status = bp_send_message_make(destination, report, &message, error);
    size_t count = bp_send_message_headers(&message, destination, headers);
    const bp_http_body body = {.before = bp_buffer_text(&message.texts[BP_SEND_BEFORE]),
                               .before_bytes = message.texts[BP_SEND_BEFORE].size,
                               .after = bp_buffer_text(&message.texts[BP_SEND_AFTER]),
                               .after_bytes = message.texts[BP_SEND_AFTER].size,
                               .fd = report->fd,
                               .file_bytes = report->bytes};
    const bp_http_request sent = {.url = bp_buffer_text(&message.texts[BP_SEND_URL]),
                                  .is_post = message.is_post,
                                  .headers = headers,
                                  .header_count = count,
                                  .ca_cert = destination->ca_cert,
                                  .body = &body,
                                  .progress = progress,
                                  .context = context};
    if (status == BUGPACK_OK) {
        status = bp_http_send(&sent, ret_answer, error);
    }
    bp_send_message_release(&message);
    return status;
}

void bp_send_deliver(const bp_send_destination *destination, const bp_send_report *report,
                     bp_send_progress *progress, void *context, bp_send_result *ret_result) {
    bp_http_answer answer = {.status = 0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    *ret_result = (bp_send_result){.outcome = BP_SEND_SENT};
    if (destination->type == BP_SEND_DIRECTORY) {
        if (put_into_dir(destination->url, report, progress, context, ret_result, &error) !=
            BUGPACK_OK) {
            judge_failure(destination, error.status, &error, ret_result);
        }
        return;
    }
    if (request(destination, report, progress, context, &answer, &error) == BUGPACK_OK) {
        judge_answer(destination, &answer, ret_result);
    } else {
        judge_failure(destination, error.status, &error, ret_result);
    }
}
