#include "recorder/line_splitter.h"

#include <string.h>

#include "base/utf8.h"

void bp_line_splitter_init(bp_line_splitter *splitter, bp_line_taker *take, void *context) {
    splitter->take = take;
    splitter->context = context;
    splitter->has_begun = false;
    splitter->pending_bytes = 0;
}

/* Gives the first `byte_count` pending bytes; `unfinished` is BUGPACK_PART_UNFINISHED or 0. */
static void give(bp_line_splitter *splitter, size_t byte_count, unsigned unfinished) {
    unsigned continues = splitter->has_begun ? BUGPACK_PART_CONTINUES : 0;
    splitter->has_begun = true;
    splitter->take(splitter->context, splitter->pending, byte_count, continues | unfinished);
    splitter->pending_bytes -= byte_count;
    memmove(splitter->pending, splitter->pending + byte_count, splitter->pending_bytes);
}

static void cut_if_too_long(bp_line_splitter *splitter) {
    if (splitter->pending_bytes > BUGPACK_LOG_MESSAGE_MAX_BYTES) {
        give(splitter,
             bp_utf8_cut(splitter->pending, splitter->pending_bytes, BUGPACK_LOG_MESSAGE_MAX_BYTES),
             BUGPACK_PART_UNFINISHED);
    }
}

/* An empty rest of a line that was begun adds no line; an empty line does. */
static void give_rest(bp_line_splitter *splitter, unsigned unfinished) {
    size_t pending_bytes = splitter->pending_bytes;
    if (pending_bytes > 0 && splitter->pending[pending_bytes - 1] == '\r') {
        splitter->pending_bytes--;
    }
    cut_if_too_long(splitter);
    if (splitter->pending_bytes > 0 || (!splitter->has_begun && unfinished == 0)) {
        give(splitter, splitter->pending_bytes, unfinished);
    }
}

/* Adds bytes without a newline to the pending ones, and cuts when the buffer is full. */
static void add_pending(bp_line_splitter *splitter, const char *bytes, size_t byte_count) {
    while (byte_count > 0) {
        if (splitter->pending_bytes == sizeof splitter->pending) {
            cut_if_too_long(splitter);
        }
        size_t free_bytes = sizeof splitter->pending - splitter->pending_bytes;
        size_t taken_bytes = byte_count < free_bytes ? byte_count : free_bytes;
        memcpy(splitter->pending + splitter->pending_bytes, bytes, taken_bytes);
        splitter->pending_bytes += taken_bytes;
        bytes += taken_bytes;
        byte_count -= taken_bytes;
    }
}

void bp_line_splitter_feed(bp_line_splitter *splitter, const char *bytes, size_t byte_count) {
    const char *end = bytes + byte_count;
    while (bytes < end) {
        const char *newline = memchr(bytes, '\n', (size_t)(end - bytes));
        add_pending(splitter, bytes, (size_t)((newline == NULL ? end : newline) - bytes));
        if (newline == NULL) {
            return;
        }
        give_rest(splitter, 0);
        splitter->has_begun = false;
        bytes = newline + 1;
    }
}

void bp_line_splitter_flush(bp_line_splitter *splitter) {
    if (splitter->pending_bytes > 0) {
        give_rest(splitter, BUGPACK_PART_UNFINISHED);
        splitter->has_begun = true;
    }
}
