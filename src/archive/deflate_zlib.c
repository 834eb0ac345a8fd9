#include "archive/deflate.h"

#include <stdlib.h>
#include <string.h>

/* next_in is a pointer to const then. */
#define ZLIB_CONST
#include <zlib.h>

#include "archive/stored.h"

struct bp_deflater {
    z_stream stream;
};

static const int level = 6;
static const int memory_level = 8; /* zlib's default: 256 KiB with the window */

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

size_t bp_deflate_chunk(bp_deflater *deflater, const unsigned char *bytes, size_t byte_count,
                        bool is_last, unsigned char *out) {
    z_stream *stream = &deflater->stream;
    (void)deflateReset(stream);
    stream->next_in = bytes;
    stream->avail_in = (uInt)byte_count;
    stream->next_out = out;
    stream->avail_out = (uInt)byte_count;
    int result = deflate(stream, is_last ? Z_FINISH : Z_FULL_FLUSH);
    /* A flush is complete when room is left (zlib.h). */
    bool is_complete = is_last ? result == Z_STREAM_END : result == Z_OK && stream->avail_out > 0;
    if (!is_complete) {
        return bp_stored_chunk(bytes, byte_count, is_last, out);
    }
    return byte_count - stream->avail_out;
}
