/*
 * One chunk of bytes as deflate blocks (RFC 1951) that stand for themselves.
 *
 * Chunks do not look back into each other, so that any of them can be made without the one before,
 * on any thread, and the memory that it takes does not depend on how large the whole is.
 */
#ifndef BP_ARCHIVE_DEFLATE_H
#define BP_ARCHIVE_DEFLATE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * The most that one chunk holds, and what its blocks need at most: a stored block holds 65,535
 * bytes and has 5 of its own.
 */
enum {
    BP_DEFLATE_CHUNK_BYTES = 256 * 1024,
    BP_DEFLATE_OUT_BYTES = BP_DEFLATE_CHUNK_BYTES + 5 * (BP_DEFLATE_CHUNK_BYTES / 65535 + 1)
};

/* The state of one thread that deflates. */
typedef struct bp_deflater bp_deflater;

/* NULL when memory is short. */
bp_deflater *bp_deflater_new(void);
void bp_deflater_free(bp_deflater *deflater);

/*
 * Deflates a chunk of 1 to BP_DEFLATE_CHUNK_BYTES bytes into `out`, which has room for
 * BP_DEFLATE_OUT_BYTES, and returns how many it put there. The blocks end on a whole byte; only
 * with `is_last` is one of them, the last one, marked as the stream's last. What does not shrink is
 * stored. It cannot fail.
 */
size_t bp_deflate_chunk(bp_deflater *deflater, const unsigned char *bytes, size_t byte_count,
                        bool is_last, unsigned char *out);

#endif
