/*
 * A growing byte buffer with a maximum that is set where it is made, and a sticky failure: a
 * sequence of appends is checked once, at its end.
 */
#ifndef BP_BASE_BUFFER_H
#define BP_BASE_BUFFER_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>
#include <bugpack/export.h>

/* `data` is NULL or holds `size` bytes and a NUL. */
typedef struct bp_buffer {
    char *data;
    size_t size;
    size_t capacity;
    size_t max_size;
    bugpack_status status; /* the first failure, LIMIT for max_size; then appends do nothing */
} bp_buffer;

/* The largest maximum that anybody outside may set: an eighth of the address space, as what is
 * printed from the contents may be several times as long. */
#define BP_BUFFER_LIMIT_MAX (SIZE_MAX >> 3)

/* Starts empty, without an allocation. An append that would pass `max_size` bytes fails whole. */
void bp_buffer_init(bp_buffer *buffer, size_t max_size);
void bp_buffer_release(bp_buffer *buffer);
/* Empties it for reuse: the memory stays, the failure goes. */
void bp_buffer_clear(bp_buffer *buffer);

bugpack_status bp_buffer_append(bp_buffer *buffer, const void *bytes, size_t byte_count);
/* The same as a bp_sink (base/sink.h), whose context is the buffer. */
bugpack_status bp_buffer_sink(void *buffer, const void *bytes, size_t byte_count);
bugpack_status bp_buffer_append_text(bp_buffer *buffer, const char *text);
bugpack_status bp_buffer_append_char(bp_buffer *buffer, char byte);
bugpack_status bp_buffer_printf(bp_buffer *buffer, const char *format, ...) BUGPACK_PRINTF(2, 3);
bugpack_status bp_buffer_vprintf(bp_buffer *buffer, const char *format, va_list arguments)
    BUGPACK_PRINTF(2, 0);

/* Makes room for `byte_count` more bytes and returns where to write them, or NULL.
 * bp_buffer_commit then adds as many as were written. */
char *bp_buffer_reserve(bp_buffer *buffer, size_t byte_count);
void bp_buffer_commit(bp_buffer *buffer, size_t byte_count);

/* Moves the contents out of `from`, which becomes empty, into `to`, whose old contents go. */
void bp_buffer_move(bp_buffer *to, bp_buffer *from);

/* The text with its NUL, "" when empty. Valid until the next append. */
const char *bp_buffer_text(const bp_buffer *buffer);

#endif
