#include "image/png.h"

#include "base/status.h"

static const size_t bytes_per_pixel = 4;

bugpack_status bp_pixels_check(const bp_pixels *pixels, size_t available_bytes,
                               bugpack_error *error) {
    if (pixels->bytes == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "an image needs pixels");
    }
    if (pixels->width == 0 || pixels->height == 0 || pixels->width > BP_PIXELS_SIDE_MAX ||
        pixels->height > BP_PIXELS_SIDE_MAX) {
        return bp_fail(
            error, BUGPACK_ERR_INVALID, "an image of %lu x %lu pixels: each side has 1 to %u",
            (unsigned long)pixels->width, (unsigned long)pixels->height, BP_PIXELS_SIDE_MAX);
    }
    size_t row_bytes = pixels->width * bytes_per_pixel;
    if (pixels->stride_bytes < row_bytes) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "a stride of %zu bytes under rows of %zu bytes",
                       pixels->stride_bytes, row_bytes);
    }
    size_t rows_above = pixels->height - 1;
    /* rows_above * stride + row_bytes <= available_bytes, without computing what may overflow */
    if (available_bytes < row_bytes ||
        (rows_above > 0 && pixels->stride_bytes > (available_bytes - row_bytes) / rows_above)) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "%lu rows that are %zu bytes apart do not fit into %zu bytes",
                       (unsigned long)pixels->height, pixels->stride_bytes, available_bytes);
    }
    return BUGPACK_OK;
}
