/*
 * A document on one line, as JSON Lines have it, from one that was laid out.
 */
#ifndef TESTS_SUPPORT_JSON_LINE_H
#define TESTS_SUPPORT_JSON_LINE_H

#include <stdbool.h>

#include "base/buffer.h"

/* Removes the spaces and line ends outside of strings from `from` on. */
static inline void json_line_fold(bp_buffer *text, size_t from) {
    bool in_string = false;
    size_t kept = from;
    for (size_t i = from; i < text->size; i++) {
        char byte = text->data[i];
        if (in_string && byte == '\\') {
            text->data[kept++] = byte;
            byte = text->data[++i];
        } else if (byte == '"') {
            in_string = !in_string;
        } else if (!in_string && (byte == ' ' || byte == '\n')) {
            continue;
        }
        text->data[kept++] = byte;
    }
    text->size = kept;
    if (text->data != NULL) {
        text->data[kept] = '\0';
    }
}

#endif
