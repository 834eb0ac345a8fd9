/*
 * What was encoded comes out of two other decoders, pixel for pixel: libpng's simplified reader and
 * one of our own in Python that shares no code with libpng.
 */
#include "image/png.h"

#include <png.h>

#include "support/made_image.h"
#include "support/not_tried.h"
#include "support/temp_dir.h"
#include "unit/unit.h"

typedef struct part {
    uint32_t x, y, width, height;
} part;

static bp_buffer encode(const bp_pixels *pixels, part cut) {
    bp_buffer out;
    bp_buffer_init(&out, (size_t)256 << 20);
    bugpack_error error = BUGPACK_ERROR_INIT;
    bugpack_status status =
        bp_png_encode(pixels, cut.x, cut.y, cut.width, cut.height, made_image_sink, &out, &error);
    cr_assert(zero(int, status), "%s", error.message);
    return out;
}

/* How many pixels of `rgba` are not those of the part. */
static size_t count_wrong(const bp_pixels *pixels, part cut, const unsigned char *rgba) {
    size_t wrong_count = 0;
    for (uint32_t y = 0; y < cut.height; y++) {
        for (uint32_t x = 0; x < cut.width; x++, rgba += 4) {
            unsigned char expected[4];
            made_image_expect(pixels, cut.x + x, cut.y + y, expected);
            wrong_count += memcmp(rgba, expected, 4) != 0;
        }
    }
    return wrong_count;
}

static void expect_libpng_reads(const bp_pixels *pixels, part cut) {
    CLEANUP(bp_buffer_release) bp_buffer file = encode(pixels, cut);
    png_image image = {.version = PNG_IMAGE_VERSION};
    cr_assert(png_image_begin_read_from_memory(&image, file.data, file.size), "%s", image.message);
    cr_assert(eq(uint, image.width, cut.width));
    cr_assert(eq(uint, image.height, cut.height));
    bool has_alpha = (image.format & PNG_FORMAT_FLAG_ALPHA) != 0;
    cr_assert(eq(int, has_alpha, !pixels->is_opaque));
    image.format = PNG_FORMAT_RGBA;
    unsigned char *rgba = malloc(PNG_IMAGE_SIZE(image));
    cr_assert(png_image_finish_read(&image, NULL, rgba, 0, NULL), "%s", image.message);
    cr_assert(zero(sz, count_wrong(pixels, cut, rgba)));
    free(rgba);
}

static void expect_python_reads(const bp_pixels *pixels, part cut) {
    CLEANUP(temp_dir_remove) temp_dir dir;
    cr_assert(temp_dir_make(&dir));
    CLEANUP(bp_buffer_release) bp_buffer file = encode(pixels, cut);
    cr_assert(temp_dir_write(&dir, "a.png", file.data, file.size));
    char command[1024];
    (void)snprintf(command, sizeof command,
                   "python3 " BUGPACK_SUPPORT "/read_png.py '%s/a.png' '%s/a.rgba'", dir.path,
                   dir.path);
    cr_assert(zero(int, system(command)), "%s", command);
    size_t rgba_bytes = (size_t)cut.width * cut.height * 4;
    unsigned char *rgba = malloc(rgba_bytes + 1);
    cr_assert(eq(sz, temp_dir_read(&dir, "a.rgba", rgba, rgba_bytes + 1), rgba_bytes));
    cr_assert(zero(sz, count_wrong(pixels, cut, rgba)));
    free(rgba);
}

/* All four formats of the pixels, whole and a part that touches no edge. */
static void in_every_format(void (*expect)(const bp_pixels *, part)) {
    bp_pixels pixels = made_image(67, 41, 12);
    for (unsigned format = 0; format < 4; format++) {
        pixels.is_bgra = (format & 1) != 0;
        pixels.is_opaque = (format & 2) != 0;
        expect(&pixels, (part){0, 0, 67, 41});
        expect(&pixels, (part){5, 7, 31, 13});
    }
    free((void *)pixels.bytes);
}

Test(png, gives_every_pixel_back_to_libpng_in_every_format_with_padded_rows) {
    in_every_format(expect_libpng_reads);
}

Test(png, gives_every_pixel_back_to_a_decoder_that_shares_no_code) {
    in_every_format(expect_python_reads);
}

Test(png, encodes_the_smallest_and_the_longest_images) {
    static const part parts[] = {{0, 0, 1, 1},
                                 {0, 0, BP_PIXELS_SIDE_MAX, 1},
                                 {0, 0, 1, BP_PIXELS_SIDE_MAX},
                                 {0, 0, 1920, 3}};
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
        bp_pixels pixels = made_image(parts[i].width, parts[i].height, i % 2);
        expect_libpng_reads(&pixels, parts[i]);
        free((void *)pixels.bytes);
    }
}

Test(png, encodes_the_pixels_at_each_corner) {
    bp_pixels pixels = made_image(9, 5, 3);
    const part corners[] = {{0, 0, 1, 1}, {8, 0, 1, 1}, {0, 4, 1, 1}, {8, 4, 1, 1}};
    for (size_t i = 0; i < sizeof corners / sizeof corners[0]; i++) {
        expect_libpng_reads(&pixels, corners[i]);
    }
    free((void *)pixels.bytes);
}

Test(png, refuses_a_part_outside_and_gives_the_sink_nothing) {
    bp_pixels pixels = made_image(8, 8, 0);
    static const part outside[] = {
        {0, 0, 0, 1},          {0, 0, 1, 0},          {8, 0, 1, 1},          {0, 8, 1, 1},
        {1, 0, 8, 8},          {0, 1, 8, 8},          {0, 0, 9, 1},          {0, 0, 1, 9},
        {UINT32_MAX, 0, 2, 1}, {0, UINT32_MAX, 1, 2}, {1, 0, UINT32_MAX, 1}, {0, 1, 1, UINT32_MAX}};
    BUFFER(out, 1 << 20);
    for (size_t i = 0; i < sizeof outside / sizeof outside[0]; i++) {
        bugpack_error error = BUGPACK_ERROR_INIT;
        bugpack_status status = bp_png_encode(&pixels, outside[i].x, outside[i].y, outside[i].width,
                                              outside[i].height, made_image_sink, &out, &error);
        cr_assert(eq(int, status, BUGPACK_ERR_INVALID), "part %zu", i);
        cr_assert(gt(sz, strlen(error.message), 10));
    }
    cr_assert(zero(sz, out.size));
    free((void *)pixels.bytes);
}

Test(png, refuses_sizes_that_make_no_sense) {
    static const unsigned char byte[4];
    static const struct {
        uint32_t width, height;
        size_t stride_bytes;
    } bad[] = {{0, 1, 4},
               {1, 0, 4},
               {BP_PIXELS_SIDE_MAX + 1, 1, SIZE_MAX / 2},
               {1, BP_PIXELS_SIDE_MAX + 1, 4},
               {UINT32_MAX, UINT32_MAX, 4},
               {0x40000001u, 1, 4}, /* 4 * width is 4 in 32 bits */
               {2, 1, 7},
               {1, 3, SIZE_MAX / 2 + 1}, /* 2 * stride is 0 */
               {1, 2, SIZE_MAX},
               {1, 2, SIZE_MAX - 3}};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bp_pixels pixels = {.bytes = byte,
                            .width = bad[i].width,
                            .height = bad[i].height,
                            .stride_bytes = bad[i].stride_bytes};
        bugpack_error error = BUGPACK_ERROR_INIT;
        cr_assert(eq(int, bp_pixels_check(&pixels, &error), BUGPACK_ERR_INVALID), "sizes %zu", i);
        cr_assert(gt(sz, strlen(error.message), 10));
    }
    bp_pixels nothing = {.bytes = NULL, .width = 1, .height = 1, .stride_bytes = 4};
    cr_assert(eq(int, bp_pixels_check(&nothing, NULL), BUGPACK_ERR_INVALID));
}

Test(png, accepts_sizes_that_just_fit) {
    static const unsigned char byte[4];
    static const struct {
        uint32_t width, height;
        size_t stride_bytes;
    } good[] = {{1, 1, 4},
                {1, 1, SIZE_MAX}, /* one row needs no stride */
                {2, 2, 8},
                {2, 2, 100},
                {16384, 16384, 65536}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        bp_pixels pixels = {.bytes = byte,
                            .width = good[i].width,
                            .height = good[i].height,
                            .stride_bytes = good[i].stride_bytes};
        cr_assert(zero(int, bp_pixels_check(&pixels, NULL)), "sizes %zu", i);
    }
}

/* Takes `left` pieces, then stops. */
typedef struct tired_sink {
    unsigned left;
    bugpack_status says;
} tired_sink;

static bugpack_status take_some(void *context, const void *bytes, size_t byte_count) {
    tired_sink *sink = context;
    return sink->left-- == 0 ? sink->says : BUGPACK_OK;
}

Test(png, stops_with_what_the_sink_says_wherever_it_says_it) {
    bp_pixels pixels = made_image(200, 200, 0);
    static const bugpack_status says[] = {BUGPACK_ERR_IO, BUGPACK_ERR_TIMEOUT,
                                          BUGPACK_ERR_NO_MEMORY};
    bugpack_status status = BUGPACK_ERR_IO;
    unsigned failure_count = 0;
    for (unsigned n = 0; status != BUGPACK_OK; n++) {
        tired_sink sink = {.left = n, .says = says[n % 3]};
        bugpack_error error = BUGPACK_ERROR_INIT;
        status = bp_png_encode(&pixels, 0, 0, 200, 200, take_some, &sink, &error);
        failure_count += status != BUGPACK_OK;
        cr_assert(status == BUGPACK_OK || status == says[n % 3], "piece %u", n);
        cr_assert(eq(int, error.status, (int)status));
    }
    cr_assert(gt(uint, failure_count, 10u), "header, several chunks and the end");
    free((void *)pixels.bytes);
}
