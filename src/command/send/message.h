/*
 * The HTTP message that brings a report: its URL, its headers, and the bytes around the zip.
 */
#ifndef BP_SEND_MESSAGE_H
#define BP_SEND_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>

#include <bugpack/error.h>

#include "base/buffer.h"
#include "send/destination.h"
#include "send/report.h"

typedef enum bp_send_text {
    BP_SEND_URL,
    BP_SEND_TYPE, /* a header, as the next two; without text: none */
    BP_SEND_KEY,
    BP_SEND_AUTHORITY,
    BP_SEND_BEFORE, /* the zip */
    BP_SEND_AFTER,
    BP_SEND_TEXT_COUNT
} bp_send_text;

typedef struct bp_send_message {
    bool is_post;
    bp_buffer texts[BP_SEND_TEXT_COUNT];
} bp_send_message;

/* Headers beside those of the destination. */
enum { BP_SEND_MESSAGE_HEADERS = 4 };

/* INVALID; NO_MEMORY. Release it also after a failure. */
bugpack_status bp_send_message_make(const bp_send_destination *destination,
                                    const bp_send_report *report, bp_send_message *message,
                                    bugpack_error *error);
void bp_send_message_release(bp_send_message *message);

/* All headers: the destination's last, without those of ours that it has. Returns how many. */
size_t
bp_send_message_headers(const bp_send_message *message, const bp_send_destination *destination,
                        const char *ret_headers[BP_SEND_FIELD_MAX + BP_SEND_MESSAGE_HEADERS]);

#endif
