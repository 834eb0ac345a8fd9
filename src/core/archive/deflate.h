/*
 * The deflate engine: ISA-L, or zlib where ISA-L is missing.
 */
#ifndef BP_ARCHIVE_DEFLATE_H
#define BP_ARCHIVE_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/sink.h"

/* Compresses one raw deflate stream (RFC 1951) after another. One thread at a time. */
typedef struct bp_deflater bp_deflater;

/* NULL when memory is short. It takes under 512 KiB, and bp_deflate allocates nothing more. */
bp_deflater *bp_deflater_new(void);
void bp_deflater_free(bp_deflater *deflater);

/* Starts a stream, whatever became of the one before. */
void bp_deflater_reset(bp_deflater *deflater);

/*
 * Compresses all of `bytes` and passes on the result in pieces of at most 64 KiB. `is_last` ends
 * the stream; there may be no bytes then. Fails only when the sink does, which ends the stream too.
 */
bugpack_status bp_deflate(bp_deflater *deflater, const void *bytes, size_t byte_count, bool is_last,
                          bp_sink *sink, void *context);

/* The CRC-32 that a zip holds; `crc` is that of the bytes before, 0 at first. */
uint32_t bp_deflate_crc32(uint32_t crc, const void *bytes, size_t byte_count);

#endif
