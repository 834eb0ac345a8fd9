#include "archive/pack.h"

/* next_in is a pointer to const then. */
#define ZLIB_CONST
#include <zlib.h>

static const size_t step_bytes = 64 * 1024;
static const int level = 6;
static const int memory_level = 8; /* zlib's default: 256 KiB with the window */

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

static bool compute_crc(const unsigned char *bytes, size_t byte_count, bp_stop *stop,
                        uint32_t *ret_crc) {
    uLong crc = crc32(0, Z_NULL, 0);
    while (byte_count > 0) {
        if (bp_stop_poll(stop)) {
            return false;
        }
        size_t step = smaller(byte_count, step_bytes);
        crc = crc32(crc, bytes, (uInt)step);
        bytes += step;
        byte_count -= step;
    }
    *ret_crc = (uint32_t)crc;
    return true;
}

/*
 * Feeds the stream until it ends (true in `ret_fits`) or `out` is at its maximum, one byte below
 * the plain size.
 */
static bool deflate_all(z_stream *stream, const unsigned char *bytes, size_t byte_count,
                        bp_stop *stop, bp_buffer *out, bool *ret_fits) {
    for (;;) {
        if (stream->avail_in == 0 && byte_count > 0) {
            if (bp_stop_poll(stop)) {
                return false;
            }
            size_t step = smaller(byte_count, step_bytes);
            stream->next_in = bytes;
            stream->avail_in = (uInt)step;
            bytes += step;
            byte_count -= step;
        }
        size_t room = smaller(out->max_size - out->size, step_bytes);
        if (room == 0) {
            *ret_fits = false;
            return true;
        }
        char *end = bp_buffer_reserve(out, room);
        if (end == NULL) {
            stop->is_no_memory = true;
            return false;
        }
        stream->next_out = (Bytef *)end;
        stream->avail_out = (uInt)room;
        int result = deflate(stream, byte_count == 0 ? Z_FINISH : Z_NO_FLUSH);
        bp_buffer_commit(out, room - stream->avail_out);
        if (result != Z_OK) {
            *ret_fits = result == Z_STREAM_END; /* anything else would be a bug: stored is right */
            return true;
        }
    }
}

bool bp_pack(const void *bytes, size_t byte_count, bp_stop *stop, bp_packed *ret_packed) {
    bp_packed packed = {.stored_bytes = byte_count};
    bp_buffer_init(&packed.deflated, byte_count > 0 ? byte_count - 1 : 0);
    if (!compute_crc(bytes, byte_count, stop, &packed.crc)) {
        return false;
    }
    if (byte_count > 1) {
        z_stream stream = {0};
        if (deflateInit2(&stream, level, Z_DEFLATED, -MAX_WBITS, memory_level,
                         Z_DEFAULT_STRATEGY) != Z_OK) {
            stop->is_no_memory = true;
            return false;
        }
        bool is_done =
            deflate_all(&stream, bytes, byte_count, stop, &packed.deflated, &packed.is_deflated);
        (void)deflateEnd(&stream);
        if (!is_done || !packed.is_deflated) {
            bp_buffer_release(&packed.deflated);
        }
        if (!is_done) {
            return false;
        }
        if (packed.is_deflated) {
            packed.stored_bytes = packed.deflated.size;
        }
    }
    *ret_packed = packed;
    return true;
}
