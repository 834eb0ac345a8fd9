#include "support/made_image.h"

#include <stdlib.h>
#include <string.h>

bp_pixels made_image(uint32_t width, uint32_t height, size_t padding_bytes) {
    size_t row_bytes = (size_t)width * 4;
    size_t stride_bytes = row_bytes + padding_bytes;
    size_t byte_count = stride_bytes * (height - 1) + row_bytes;
    unsigned char *bytes = malloc(byte_count);
    uint32_t state = 0x9E3779B9u + width;
    for (size_t i = 0; bytes != NULL && i < byte_count; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(state >> 24);
    }
    bp_pixels pixels = {
        .bytes = bytes, .width = width, .height = height, .stride_bytes = stride_bytes};
    return pixels;
}

void made_image_expect(const bp_pixels *pixels, uint32_t x, uint32_t y, unsigned char out[4]) {
    memcpy(out, pixels->bytes + y * pixels->stride_bytes + (size_t)x * 4, 4);
    if (pixels->is_bgra) {
        unsigned char blue = out[0];
        out[0] = out[2];
        out[2] = blue;
    }
    if (pixels->is_opaque) {
        out[3] = 255;
    }
}

bugpack_status made_image_sink(void *buffer, const void *bytes, size_t byte_count) {
    return bp_buffer_append(buffer, bytes, byte_count);
}
