#include "send/deliver.h"

#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/file.h"
#include "send/message.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

static bugpack_status put_into_dir(const char *path, const bp_send_report *report,
                                   bp_send_progress *progress, void *context,
                                   bp_send_result *result, bugpack_error *error) {
    char name[sizeof report->name + 16];
    int dir_fd = -1;
    bugpack_status status = bp_file_open_directory(path, false, &dir_fd, error);
    if (status == BUGPACK_OK) {
        status = bp_send_report_copy(report, dir_fd, path, report->name, progress, context, name,
                                     sizeof name, error);
    }
    if (status == BUGPACK_OK) {
        (void)snprintf(result->text, sizeof result->text, "%s/%s", path, name);
    }
    bp_file_close(dir_fd);
    return status;
}

/* The code of S3 (AccessDenied), which is letters; "" where there is none. Nothing else of an
 * answer is shown: a server may repeat what it was told, as a signature. */
static void find_code(const char *body, char *out, size_t out_bytes) {
    static const char begin[] = "<Code>";
    const char *code = strstr(body, begin);
    size_t length = code != NULL ? strspn(code + sizeof begin - 1, letters) : 0;
    (void)snprintf(out, out_bytes, "%.*s", (int)length,
                   code != NULL ? code + sizeof begin - 1 : "");
}

/* Judges an answer (RFC 9110): what says that the server, or the way to it, has trouble is tried
 * again. */
static void judge_answer(const bp_http_answer *answer, bp_send_result *result) {
    char code[64];
    long status = answer->status;
    bool is_sent = status >= 200 && status < 300;
    bool is_later = status == 408 || status == 429 || (status >= 500 && status < 600);
    result->http_status = status;
    result->is_down = status == 429 || status == 503;
    result->retry_after_secs = answer->retry_after_secs;
    if (is_sent) {
        result->outcome = BP_SEND_SENT;
        return;
    }
    result->outcome = is_later ? BP_SEND_LATER : BP_SEND_REFUSED;
    find_code(answer->body, code, sizeof code);
    bool is_redirect = status >= 300 && status < 400;
    (void)snprintf(result->text, sizeof result->text, "the server answered %ld%s%s%s", status,
                   is_redirect ? ", a redirection that is not followed" : "",
                   code[0] != '\0' ? ": " : "", code);
}

static void judge_failure(const bugpack_error *error, bp_send_result *result) {
    switch (error->status) {
    case BUGPACK_ERR_CANCELLED:
        result->outcome = BP_SEND_CANCELLED;
        break;
    case BUGPACK_ERR_INVALID:
    case BUGPACK_ERR_CORRUPT: /* of the report, as the next */
    case BUGPACK_ERR_LIMIT:
        result->outcome = BP_SEND_REFUSED;
        break;
    default:
        result->outcome = BP_SEND_LATER;
        result->is_down = true;
    }
    (void)snprintf(result->text, sizeof result->text, "%s", error->message);
}

static bugpack_status request(const bp_send_destination *destination, const bp_send_report *report,
                              bp_send_progress *progress, void *context, bp_http_answer *ret_answer,
                              bugpack_error *error) {
    bp_send_message message;
    const char *headers[BP_SEND_FIELD_MAX + BP_SEND_MESSAGE_HEADERS];
    bugpack_status status = bp_send_message_make(destination, report, &message, error);
    size_t count = bp_send_message_headers(&message, destination, headers);
    const bp_http_request sent = {.url = bp_buffer_text(&message.texts[BP_SEND_URL]),
                                  .is_post = message.is_post,
                                  .headers = headers,
                                  .header_count = count,
                                  .ca_cert = destination->ca_cert,
                                  .before = bp_buffer_text(&message.texts[BP_SEND_BEFORE]),
                                  .before_bytes = message.texts[BP_SEND_BEFORE].size,
                                  .after = bp_buffer_text(&message.texts[BP_SEND_AFTER]),
                                  .after_bytes = message.texts[BP_SEND_AFTER].size,
                                  .fd = report->fd,
                                  .file_bytes = report->bytes,
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
    bugpack_status status;
    if (destination->type == BP_SEND_DIRECTORY) {
        status = put_into_dir(destination->url, report, progress, context, ret_result, &error);
    } else {
        status = request(destination, report, progress, context, &answer, &error);
        if (status == BUGPACK_OK) {
            judge_answer(&answer, ret_result);
        }
    }
    if (status != BUGPACK_OK) {
        judge_failure(&error, ret_result);
    }
}
