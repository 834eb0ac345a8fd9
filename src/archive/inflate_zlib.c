#include "archive/inflate.h"

#include <stdlib.h>

/* next_in is a pointer to const then. */
#define ZLIB_CONST
#include <zlib.h>

enum { piece_bytes = 64 * 1024 };

struct bp_inflater {
    z_stream stream;
    unsigned char piece[piece_bytes];
};

bp_inflater *bp_inflater_new(void) {
    bp_inflater *inflater = calloc(1, sizeof *inflater);
    if (inflater != NULL && inflateInit2(&inflater->stream, -MAX_WBITS) != Z_OK) {
        free(inflater);
        inflater = NULL;
    }
    return inflater;
}

void bp_inflater_free(bp_inflater *inflater) {
    if (inflater != NULL) {
        (void)inflateEnd(&inflater->stream);
        free(inflater);
    }
}

void bp_inflater_reset(bp_inflater *inflater) {
    (void)inflateReset(&inflater->stream);
}

bugpack_status bp_inflate(bp_inflater *inflater, const void *bytes, size_t byte_count,
                          bool *ret_is_over, bp_sink *sink, void *context) {
    z_stream *stream = &inflater->stream;
    int result;
    stream->next_in = bytes;
    stream->avail_in = (uInt)byte_count;
    do {
        stream->next_out = inflater->piece;
        stream->avail_out = piece_bytes;
        result = inflate(stream, Z_NO_FLUSH);
        size_t made = piece_bytes - stream->avail_out;
        bugpack_status status = made > 0 ? sink(context, inflater->piece, made) : BUGPACK_OK;
        if (status != BUGPACK_OK) {
            return status;
        }
        if (result == Z_MEM_ERROR) {
            return BUGPACK_ERR_NO_MEMORY;
        }
        if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
            return BUGPACK_ERR_CORRUPT;
        }
    } while (result != Z_STREAM_END && stream->avail_out == 0);
    *ret_is_over = result == Z_STREAM_END;
    return *ret_is_over && stream->avail_in > 0 ? BUGPACK_ERR_CORRUPT : BUGPACK_OK;
}
