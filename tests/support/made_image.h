/*
 * Pixels that are made up, and what a correct PNG of them holds.
 */
#ifndef TESTS_SUPPORT_MADE_IMAGE_H
#define TESTS_SUPPORT_MADE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buffer.h"
#include "image/png.h"

/*
 * Allocates `width` x `height` pixels, each byte another pseudo-random one, with `padding_bytes`
 * behind each row but the last, so that a read beyond it is seen by the address sanitizer. The
 * bytes are the caller's to free; the format flags are the caller's to set.
 */
bp_pixels made_image(uint32_t width, uint32_t height, size_t padding_bytes);

/* The four samples, in the order R, G, B, A, that a decoder has to give for one pixel. */
void made_image_expect(const bp_pixels *pixels, uint32_t x, uint32_t y, unsigned char out[4]);

/* A bp_sink whose context is a bp_buffer. */
bugpack_status made_image_sink(void *buffer, const void *bytes, size_t byte_count);

#endif
