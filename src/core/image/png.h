/*
 * Encodes pixels as a PNG.
 */
#ifndef BP_IMAGE_PNG_H
#define BP_IMAGE_PNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <bugpack/error.h>

#include "base/sink.h"

/* The longest side of an image: what a wall of four 4K screens in a row still fits into. */
#define BP_PIXELS_SIDE_MAX 16384u

/* Eight bits a sample, four samples a pixel, rows `stride_bytes` apart, top row first. */
typedef struct bp_pixels {
    const unsigned char *bytes; /* borrowed */
    uint32_t width, height;
    size_t stride_bytes;
    bool is_bgra;
    bool is_opaque; /* the fourth sample is padding, not alpha */
} bp_pixels;

/*
 * INVALID, with a sentence, unless the sizes make sense: 1 to BP_PIXELS_SIDE_MAX a side, a stride
 * of at least 4 * width, and no overflow. The last row needs no padding behind it.
 */
bugpack_status bp_pixels_check(const bp_pixels *pixels, bugpack_error *error);

/*
 * Encodes a part of the pixels (`x`, `y`, `width`, `height`; the whole: 0, 0, width, height), row
 * by row into the sink, fast rather than small: as RGBA, or as RGB when the pixels are opaque. A
 * megapixel of text takes about 8 ms, one of noise 60 ms, and either less than 1 MiB of memory: a
 * sink that wants to give up in the middle says so by its status.
 *
 * NO_MEMORY, INVALID (sizes, or a part outside), or what the sink said. After a failure the sink
 * has got a part of a file. Any thread.
 */
bugpack_status bp_png_encode(const bp_pixels *pixels, uint32_t x, uint32_t y, uint32_t width,
                             uint32_t height, bp_sink *sink, void *context, bugpack_error *error);

#endif
