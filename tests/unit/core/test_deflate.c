/*
 * What the engine makes of bytes, in whatever pieces they come, is one deflate stream.
 */
#include <zlib.h>

#include "archive/deflate.h"
#include "base/buffer.h"
#include "unit/unit.h"

enum { max_bytes = 1280 * 1024 };

static unsigned char plain[max_bytes];
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

static bugpack_status append(void *context, const void *bytes, size_t byte_count) {
    cr_expect(le(sz, byte_count, 64 * 1024));
    return bp_buffer_append(context, bytes, byte_count);
}

static bool inflates(const bp_buffer *packed, size_t byte_count) {
    z_stream stream = {0};
    cr_assert(eq(int, inflateInit2(&stream, -MAX_WBITS), Z_OK));
    stream.next_in = (unsigned char *)packed->data;
    stream.avail_in = (uInt)packed->size;
    stream.next_out = again;
    stream.avail_out = sizeof again;
    int result = inflate(&stream, Z_FINISH);
    bool is_whole = result == Z_STREAM_END && stream.avail_in == 0 &&
                    stream.total_out == byte_count && memcmp(again, plain, byte_count) == 0;
    (void)inflateEnd(&stream);
    return is_whole;
}

/* Deflates `byte_count` bytes in pieces of `step`, or of random sizes up to `-step`. */
static size_t expect_stream(bp_deflater *deflater, size_t byte_count, long step) {
    uint32_t crc = 0;
    BUFFER(packed, SIZE_MAX / 4);
    bp_deflater_reset(deflater);
    for (size_t at = 0; at < byte_count;) {
        size_t wanted = step > 0 ? (size_t)step : 1 + (size_t)(next_random() % (uint64_t)-step);
        size_t count = wanted < byte_count - at ? wanted : byte_count - at;
        cr_assert(zero(int, bp_deflate(deflater, plain + at, count, false, append, &packed)));
        crc = bp_deflate_crc32(crc, plain + at, count);
        at += count;
    }
    cr_assert(zero(int, bp_deflate(deflater, NULL, 0, true, append, &packed)));
    cr_expect(inflates(&packed, byte_count), "%zu bytes in pieces of %ld", byte_count, step);
    cr_expect(eq(u64, crc, crc32(0, plain, (uInt)byte_count)));
    size_t packed_bytes = packed.size;
    return packed_bytes;
}

Test(deflate, bytes_of_any_kind_come_out_again) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    for (unsigned value_count = 1; value_count <= 256; value_count += value_count < 16 ? 1 : 16) {
        fill(value_count);
        size_t packed_bytes = expect_stream(deflater, max_bytes, 256 * 1024);
        cr_expect(value_count > 128 || packed_bytes < max_bytes, "%u values", value_count);
        cr_expect(lt(sz, packed_bytes, max_bytes + max_bytes / 1000), "%u values", value_count);
    }
    bp_deflater_free(deflater);
}

Test(deflate, pieces_of_any_size_are_one_stream) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    fill(11);
    for (size_t size = 0; size < 20000; size += size < 300 ? 1 : 997) {
        (void)expect_stream(deflater, size, 1 + (long)size / 3);
    }
    for (unsigned i = 0; i < 60; i++) {
        fill(1 + (unsigned)(next_random() % 256));
        (void)expect_stream(deflater, (size_t)(next_random() % max_bytes),
                            i % 2 == 0 ? -1000 : -200000);
    }
    bp_deflater_free(deflater);
}

Test(deflate, noise_between_texts_does_not_cost_the_texts) {
    enum { part = max_bytes / 5 };
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    fill(256);
    memset(plain, 'a', part);
    memset(plain + 3 * part, 'b', part);
    size_t packed_bytes = expect_stream(deflater, max_bytes, 256 * 1024);
    cr_expect(gt(sz, packed_bytes, 3 * part));
    cr_expect(lt(sz, packed_bytes, 3 * part + part / 10));
    bp_deflater_free(deflater);
}

static bugpack_status refuse(void *context, const void *bytes, size_t byte_count) {
    unsigned *left = context;
    return (*left)-- == 0 ? BUGPACK_ERR_IO : BUGPACK_OK;
}

Test(deflate, passes_on_what_the_sink_says_and_begins_anew_after_it) {
    bp_deflater *deflater = bp_deflater_new();
    cr_assert(ne(ptr, deflater, NULL));
    fill(256);
    for (unsigned i = 0; i < 5; i++) {
        unsigned left = i;
        bp_deflater_reset(deflater);
        cr_expect(
            eq(int, bp_deflate(deflater, plain, max_bytes, true, refuse, &left), BUGPACK_ERR_IO));
        (void)expect_stream(deflater, max_bytes, 100000);
    }
    bp_deflater_free(deflater);
}
