#include "send/message.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include <bugpack/version.h>

#include "base/status.h"
#include "send/envelope.h"

enum { text_max_bytes = 1 << 20 };

static const char user_agent[] = "User-Agent: bugpack/" BUGPACK_VERSION;

/* Appends a text of which everything but letters, digits and "-._~" is escaped by %XX. */
static void append_escaped(bp_buffer *out, const char *text) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._~";
    for (; *text != '\0'; text++) {
        if (strchr(plain, *text) != NULL) {
            (void)bp_buffer_append_char(out, *text);
        } else {
            (void)bp_buffer_printf(out, "%%%02X", (unsigned char)*text);
        }
    }
}

/* With the report's name where the path ends with "/". */
static void add_url(const bp_send_destination *destination, const bp_send_report *report,
                    bp_buffer *out) {
    bp_url url;
    if (destination->is_post || !bp_send_destination_takes_many(destination) ||
        !bp_url_parse(destination->url, &url)) {
        (void)bp_buffer_append_text(out, destination->url);
        return;
    }
    const char *path_end = url.path.at + url.path.bytes;
    (void)bp_buffer_append(out, destination->url, (size_t)(path_end - destination->url));
    append_escaped(out, report->name);
    (void)bp_buffer_append_text(out, path_end);
}

/* A name between quotes, with the characters that end it escaped as browsers do. */
static void append_quoted(bp_buffer *out, const char *text, size_t bytes) {
    (void)bp_buffer_append_char(out, '"');
    for (size_t i = 0; i < bytes; i++) {
        if (text[i] == '"' || text[i] == '\r' || text[i] == '\n') {
            (void)bp_buffer_printf(out, "%%%02X", (unsigned char)text[i]);
        } else {
            (void)bp_buffer_append_char(out, text[i]);
        }
    }
    (void)bp_buffer_append_char(out, '"');
}

/* multipart/form-data (RFC 7578): the fields of the destination, and the report as the last, where
 * S3 wants it. */
static void add_form(const bp_send_destination *destination, const bp_send_report *report,
                     bp_send_message *message) {
    static const char disposition[] = "Content-Disposition: form-data; name=";
    char boundary[BP_ID_BYTES];
    bp_buffer *out = &message->texts[BP_SEND_BEFORE];
    bp_id_new(boundary);
    (void)bp_buffer_printf(&message->texts[BP_SEND_TYPE],
                           "Content-Type: multipart/form-data; boundary=%s", boundary);
    for (size_t i = 0; i < destination->field_count; i++) {
        const char *field = destination->fields[i], *equals = strchr(field, '=');
        (void)bp_buffer_printf(out, "--%s\r\n%s", boundary, disposition);
        append_quoted(out, field, (size_t)(equals - field));
        (void)bp_buffer_printf(out, "\r\n\r\n%s\r\n", equals + 1);
    }
    (void)bp_buffer_printf(out, "--%s\r\n%s", boundary, disposition);
    append_quoted(out, destination->form_field, strlen(destination->form_field));
    (void)bp_buffer_append_text(out, "; filename=");
    append_quoted(out, report->name, strlen(report->name));
    (void)bp_buffer_append_text(out, "\r\nContent-Type: application/zip\r\n\r\n");
    (void)bp_buffer_printf(&message->texts[BP_SEND_AFTER], "\r\n--%s--\r\n", boundary);
}

bugpack_status bp_send_message_make(const bp_send_destination *destination,
                                    const bp_send_report *report, bp_send_message *message,
                                    bugpack_error *error) {
    for (size_t i = 0; i < BP_SEND_TEXT_COUNT; i++) {
        bp_buffer_init(&message->texts[i], text_max_bytes);
    }
    message->is_post = destination->is_post;
    (void)bp_buffer_printf(&message->texts[BP_SEND_KEY], "Idempotency-Key: %s", report->id);
    if (destination->type == BP_SEND_SENTRY) {
        bugpack_status status = bp_send_envelope_make(destination, report, message, error);
        if (status != BUGPACK_OK) {
            return status;
        }
    } else {
        add_url(destination, report, &message->texts[BP_SEND_URL]);
        if (destination->form_field != NULL) {
            add_form(destination, report, message);
        } else {
            (void)bp_buffer_append_text(&message->texts[BP_SEND_TYPE],
                                        "Content-Type: application/zip");
        }
    }
    for (size_t i = 0; i < BP_SEND_TEXT_COUNT; i++) {
        if (message->texts[i].status != BUGPACK_OK) {
            return bp_fail_memory(error, "send a report");
        }
    }
    return BUGPACK_OK;
}

void bp_send_message_release(bp_send_message *message) {
    for (size_t i = 0; i < BP_SEND_TEXT_COUNT; i++) {
        bp_buffer_release(&message->texts[i]);
    }
}

static bool is_replaced(const bp_send_destination *destination, const char *header) {
    size_t name_bytes = strcspn(header, ":") + 1;
    for (size_t i = 0; i < destination->header_count; i++) {
        if (strncasecmp(destination->headers[i], header, name_bytes) == 0) {
            return true;
        }
    }
    return false;
}

size_t
bp_send_message_headers(const bp_send_message *message, const bp_send_destination *destination,
                        const char *ret_headers[BP_SEND_FIELD_MAX + BP_SEND_MESSAGE_HEADERS]) {
    const char *const own[BP_SEND_MESSAGE_HEADERS] = {
        user_agent, bp_buffer_text(&message->texts[BP_SEND_TYPE]),
        bp_buffer_text(&message->texts[BP_SEND_KEY]),
        bp_buffer_text(&message->texts[BP_SEND_AUTHORITY])};
    size_t count = 0;
    for (size_t i = 0; i < BP_SEND_MESSAGE_HEADERS; i++) {
        if (own[i][0] != '\0' && !is_replaced(destination, own[i])) {
            ret_headers[count++] = own[i];
        }
    }
    for (size_t i = 0; i < destination->header_count; i++) {
        ret_headers[count++] = destination->headers[i];
    }
    return count;
}
