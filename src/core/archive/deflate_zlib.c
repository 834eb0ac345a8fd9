#include "archive/deflate.h"

#include <stdlib.h>

/* next_in is a pointer to const then. */
#define ZLIB_CONST
#include <zlib.h>

/* 256 KiB with the window, as zlib.h reckons. */
enum { level = 1, memory_level = 8, piece_bytes = 64 * 1024 };

struct bp_deflater {
    z_stream stream;
    unsigned char piece[piece_bytes];
};

bp_deflater *bp_deflater_new(void) {
    bp_deflater *deflater = calloc(1, sizeof *deflater);
    if (deflater != NULL && deflateInit2(&deflater->stream, level, Z_DEFLATED, -MAX_WBITS,
                                         memory_level, Z_DEFAULT_STRATEGY) != Z_OK) {
        free(deflater);
        deflater = NULL;
    }
    return deflater;
}

void bp_deflater_free(bp_deflater *deflater) {
    if (deflater != NULL) {
        (void)deflateEnd(&deflater->stream);
        free(deflater);
    }
}

void bp_deflater_reset(bp_deflater *deflater) {
    (void)deflateReset(&deflater->stream);
}

bugpack_status bp_deflate(bp_deflater *deflater, const void *bytes, size_t byte_count, bool is_last,
                          bp_sink *sink, void *context) {
    z_stream *stream = &deflater->stream;
    stream->next_in = bytes;
    stream->avail_in = (uInt)byte_count;
    do {
        stream->next_out = deflater->piece;
        stream->avail_out = piece_bytes;
        /* It has room and a good state; Z_BUF_ERROR only says that there was nothing to do. */
        (void)deflate(stream, is_last ? Z_FINISH : Z_NO_FLUSH);
        size_t made = piece_bytes - stream->avail_out;
        bugpack_status status = made > 0 ? sink(context, deflater->piece, made) : BUGPACK_OK;
        if (status != BUGPACK_OK) {
            return status;
        }
    } while (stream->avail_out == 0);
    return BUGPACK_OK;
}

uint32_t bp_deflate_crc32(uint32_t crc, const void *bytes, size_t byte_count) {
    return (uint32_t)crc32_z(crc, bytes, byte_count);
}
