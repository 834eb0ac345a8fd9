/*
 * Chunks that were deflated each by itself are one stream when they are put behind each other.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "archive/deflate.h"

enum { max_chunks = 5, max_bytes = max_chunks * BP_DEFLATE_CHUNK_BYTES };

static unsigned char plain[max_bytes];
static unsigned char packed[max_chunks * BP_DEFLATE_OUT_BYTES];
static unsigned char again[max_bytes + 1];
static uint64_t state = 88172645463325252u;

static uint64_t next_random(void) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

/* Bytes of 1 to 256 values: from what shrinks to nothing to what does not shrink at all. */
static void fill(unsigned value_count) {
    for (size_t i = 0; i < max_bytes; i++) {
        plain[i] = (unsigned char)((next_random() >> 32) % value_count);
    }
}

static bool inflates(size_t packed_bytes, size_t byte_count) {
    z_stream stream = {0};
    cr_assert(eq(int, inflateInit2(&stream, -MAX_WBITS), Z_OK));
    stream.next_in = packed;
    stream.avail_in = (uInt)packed_bytes;
    stream.next_out = again;
    stream.avail_out = sizeof again;
    int result = inflate(&stream, Z_FINISH);
    bool is_whole = result == Z_STREAM_END && stream.avail_in == 0 &&
                    stream.total_out == byte_count && memcmp(again, plain, byte_count) == 0;
    (void)inflateEnd(&stream);
    return is_whole;
}

/* Deflates `byte_count` bytes in chunks of `chunk_bytes`; how many it makes of them. */
static size_t pack(bp_deflater *deflater, size_t byte_count, size_t chunk_bytes) {
    size_t packed_bytes = 0;
    for (size_t at = 0; at < byte_count; at += chunk_bytes) {
        size_t left = byte_count - at;
        bool is_last = left <= chunk_bytes;
        size_t count = bp_deflate_chunk(deflater, plain + at, is_last ? left : chunk_bytes, is_last,
                                        packed + packed_bytes);
        cr_assert(le(sz, count, BP_DEFLATE_OUT_BYTES));
        packed_bytes += count;
    }
    return packed_bytes;
}

Test(deflate, chunks_of_any_kind_are_one_stream_together) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    for (unsigned value_count = 1; value_count <= 256; value_count += value_count < 16 ? 1 : 16) {
        fill(value_count);
        size_t packed_bytes = pack(deflater, max_bytes, BP_DEFLATE_CHUNK_BYTES);
        cr_expect(inflates(packed_bytes, max_bytes), "%u values", value_count);
        cr_expect(value_count > 128 || packed_bytes < max_bytes, "%u values", value_count);
    }
    bp_deflater_free(deflater);
}

/* The streams end at every bit of a byte, with and without room for what is put behind. */
Test(deflate, chunks_of_any_size_are_one_stream_together) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    fill(11);
    for (size_t size = 1; size < 20000; size += size < 300 ? 1 : 997) {
        size_t packed_bytes = pack(deflater, 3 * size, size);
        cr_expect(inflates(packed_bytes, 3 * size), "chunks of %zu", size);
    }
    bp_deflater_free(deflater);
}

Test(deflate, noise_between_texts_is_stored_and_the_rest_is_not) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    fill(256);
    memset(plain, 'a', BP_DEFLATE_CHUNK_BYTES);
    memset(plain + 3 * BP_DEFLATE_CHUNK_BYTES, 'b', BP_DEFLATE_CHUNK_BYTES);
    size_t packed_bytes = pack(deflater, max_bytes, BP_DEFLATE_CHUNK_BYTES);
    cr_expect(inflates(packed_bytes, max_bytes));
    cr_expect(gt(sz, packed_bytes, 3 * BP_DEFLATE_CHUNK_BYTES));
    cr_expect(lt(sz, packed_bytes, 3 * BP_DEFLATE_CHUNK_BYTES + 4096));
    bp_deflater_free(deflater);
}

/* Bytes as even as noise's, which are one pattern over and over. */
Test(deflate, what_repeats_is_not_taken_for_noise) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    fill(256);
    for (size_t i = 10000; i < max_bytes; i++) {
        plain[i] = plain[i - 10000];
    }
    size_t packed_bytes = pack(deflater, max_bytes, BP_DEFLATE_CHUNK_BYTES);
    cr_expect(inflates(packed_bytes, max_bytes));
    cr_expect(lt(sz, packed_bytes, max_bytes / 8));
    bp_deflater_free(deflater);
}
