/*
 * Decompression: ISA-L, or zlib where ISA-L is missing.
 */
#ifndef BP_ARCHIVE_INFLATE_H
#define BP_ARCHIVE_INFLATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/sink.h"

/* Decompresses one raw deflate stream (RFC 1951). One thread at a time. */
typedef struct bp_inflater bp_inflater;

/* NULL when memory is short. It takes under 192 KiB. */
bp_inflater *bp_inflater_new(void);
void bp_inflater_free(bp_inflater *inflater);

/* Starts a stream, whatever became of the one before. */
void bp_inflater_reset(bp_inflater *inflater);

/*
 * Decompresses all of `bytes` and passes on the result in pieces of at most 64 KiB. `ret_is_over`
 * says whether the stream has ended, just with the last of the bytes. CORRUPT for what is no such
 * stream, or goes on behind its end; NO_MEMORY; what the sink returns.
 */
bugpack_status bp_inflate(bp_inflater *inflater, const void *bytes, size_t byte_count,
                          bool *ret_is_over, bp_sink *sink, void *context);

#endif
