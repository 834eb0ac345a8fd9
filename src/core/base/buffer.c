#include "base/buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void bp_buffer_init(bp_buffer *buffer, size_t max_size) {
    *buffer = (bp_buffer){.max_size = max_size};
}

void bp_buffer_release(bp_buffer *buffer) {
    free(buffer->data);
    bp_buffer_init(buffer, buffer->max_size);
}

void bp_buffer_clear(bp_buffer *buffer) {
    buffer->size = 0;
    buffer->status = BUGPACK_OK;
    if (buffer->data != NULL) {
        buffer->data[0] = '\0';
    }
}

/* Makes the capacity at least size + byte_count + 1, growing by doubling up to the maximum. */
static bugpack_status grow(bp_buffer *buffer, size_t byte_count) {
    if (buffer->status != BUGPACK_OK) {
        return buffer->status;
    }
    if (byte_count > buffer->max_size - buffer->size || buffer->max_size == SIZE_MAX) {
        return buffer->status = BUGPACK_ERR_LIMIT;
    }
    size_t needed = buffer->size + byte_count + 1;
    if (needed <= buffer->capacity) {
        return BUGPACK_OK;
    }
    size_t capacity = buffer->capacity < 128 ? 128 : buffer->capacity;
    while (capacity < needed) {
        capacity = capacity > buffer->max_size / 2 ? buffer->max_size + 1 : capacity * 2;
    }
    char *data = realloc(buffer->data, capacity);
    if (data == NULL) {
        return buffer->status = BUGPACK_ERR_NO_MEMORY;
    }
    buffer->data = data;
    buffer->capacity = capacity;
    return BUGPACK_OK;
}

char *bp_buffer_reserve(bp_buffer *buffer, size_t byte_count) {
    return grow(buffer, byte_count) == BUGPACK_OK ? buffer->data + buffer->size : NULL;
}

void bp_buffer_commit(bp_buffer *buffer, size_t byte_count) {
    buffer->size += byte_count;
    buffer->data[buffer->size] = '\0';
}

bugpack_status bp_buffer_append(bp_buffer *buffer, const void *bytes, size_t byte_count) {
    char *end = bp_buffer_reserve(buffer, byte_count);
    if (end == NULL) {
        return buffer->status;
    }
    if (byte_count > 0) {
        memcpy(end, bytes, byte_count);
    }
    bp_buffer_commit(buffer, byte_count);
    return BUGPACK_OK;
}

bugpack_status bp_buffer_sink(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}

bugpack_status bp_buffer_append_text(bp_buffer *buffer, const char *text) {
    return bp_buffer_append(buffer, text, strlen(text));
}

bugpack_status bp_buffer_append_char(bp_buffer *buffer, char byte) {
    return bp_buffer_append(buffer, &byte, 1);
}

bugpack_status bp_buffer_vprintf(bp_buffer *buffer, const char *format, va_list arguments) {
    va_list again;
    va_copy(again, arguments);
    int length = vsnprintf(NULL, 0, format, again);
    va_end(again);
    if (length < 0) {
        if (buffer->status == BUGPACK_OK) {
            buffer->status = BUGPACK_ERR_INVALID;
        }
        return buffer->status;
    }
    char *end = bp_buffer_reserve(buffer, (size_t)length);
    if (end == NULL) {
        return buffer->status;
    }
    (void)vsnprintf(end, (size_t)length + 1, format, arguments);
    bp_buffer_commit(buffer, (size_t)length);
    return BUGPACK_OK;
}

bugpack_status bp_buffer_printf(bp_buffer *buffer, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    bugpack_status status = bp_buffer_vprintf(buffer, format, arguments);
    va_end(arguments);
    return status;
}

void bp_buffer_move(bp_buffer *to, bp_buffer *from) {
    free(to->data);
    *to = *from;
    bp_buffer_init(from, from->max_size);
}

const char *bp_buffer_text(const bp_buffer *buffer) {
    return buffer->data != NULL ? buffer->data : "";
}
