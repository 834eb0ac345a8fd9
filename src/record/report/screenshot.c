#include "report/screenshot.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"

enum { bytes_per_pixel = 4 };

static bool is_no_region(const bugpack_region *region) {
    return region->x == 0 && region->y == 0 && region->width == 0 && region->height == 0;
}

static bp_pixels read_pixels(const bugpack_picture *picture) {
    bool is_bgr = picture->format == BUGPACK_PIXELS_BGRA || picture->format == BUGPACK_PIXELS_BGRX;
    bool is_opaque =
        picture->format == BUGPACK_PIXELS_RGBX || picture->format == BUGPACK_PIXELS_BGRX;
    return (bp_pixels){.bytes = picture->pixels,
                       .width = picture->width,
                       .height = picture->height,
                       .stride_bytes = picture->stride != 0
                                           ? picture->stride
                                           : (size_t)picture->width * bytes_per_pixel,
                       .is_bgra = is_bgr,
                       .is_opaque = is_opaque};
}

bugpack_status bp_screenshot_check(const bugpack_picture *picture, const bugpack_region *region,
                                   bugpack_error *error) {
    if (picture == NULL) {
        return is_no_region(region)
                   ? BUGPACK_OK
                   : bp_fail(error, BUGPACK_ERR_INVALID, "region needs a screenshot");
    }
    if ((unsigned)picture->format > BUGPACK_PIXELS_BGRX) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "format: %u is no bugpack_pixel_format",
                       (unsigned)picture->format);
    }
    bp_pixels pixels = read_pixels(picture);
    bugpack_status status = bp_pixels_check(&pixels, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    uint64_t byte_count = (uint64_t)picture->width * picture->height * bytes_per_pixel;
    if (byte_count > BUGPACK_PICTURE_MAX_BYTES) {
        return bp_fail(error, BUGPACK_ERR_INVALID,
                       "an image of %" PRIu64 " bytes: it must have at most %u", byte_count,
                       BUGPACK_PICTURE_MAX_BYTES);
    }
    if (is_no_region(region)) {
        return BUGPACK_OK;
    }
    bool is_visible = region->width > 0 && region->height > 0 && region->x < picture->width &&
                      region->y < picture->height;
    return is_visible ? BUGPACK_OK
                      : bp_fail(error, BUGPACK_ERR_INVALID,
                                "region is empty, or outside of the screenshot");
}

/* Replaces the bytes by a copy without padding, which is the caller's to free; NULL without memory.
 */
static unsigned char *copy_pixels(bp_pixels *pixels) {
    size_t row_bytes = (size_t)pixels->width * bytes_per_pixel;
    unsigned char *copy = malloc(row_bytes * pixels->height);
    for (uint32_t row = 0; copy != NULL && row < pixels->height; row++) {
        memcpy(copy + row * row_bytes, pixels->bytes + row * pixels->stride_bytes, row_bytes);
    }
    pixels->bytes = copy;
    pixels->stride_bytes = row_bytes;
    return copy;
}

void bp_pixel_owner_release(bp_pixel_owner *owner) {
    bugpack_screenshot_release_callback *release = owner->release;
    owner->release = NULL;
    if (release != NULL) {
        release(owner->context);
    }
}

void bp_screenshot_take(const bugpack_picture *picture, const bugpack_region *region,
                        bp_pixel_owner *owner, _Atomic(uint64_t) *held_bytes,
                        bp_screenshot *screenshot) {
    *screenshot = (bp_screenshot){.is_there = true,
                                  .held_bytes = held_bytes,
                                  .pixels = read_pixels(picture),
                                  .region = *region, /* checked, or none */
                                  .captured = bp_clock_now()};
    size_t row_bytes = (size_t)screenshot->pixels.width * bytes_per_pixel;
    /* The region is clipped to the picture. */
    uint32_t width_max = picture->width - region->x, height_max = picture->height - region->y;
    if (region->width > width_max) {
        screenshot->region.width = width_max;
    }
    if (region->height > height_max) {
        screenshot->region.height = height_max;
    }
    screenshot->byte_count = (uint64_t)row_bytes * screenshot->pixels.height;
    uint64_t before =
        atomic_fetch_add_explicit(held_bytes, screenshot->byte_count, memory_order_relaxed);
    if (before + screenshot->byte_count > BUGPACK_PICTURE_MAX_BYTES) {
        screenshot->refusal = "the pictures of the reports that wait take all the room there is";
        screenshot->pixels.bytes = NULL;
    } else if (owner->release != NULL) {
        screenshot->owner = *owner;
        owner->release = NULL;
    } else {
        screenshot->copy = copy_pixels(&screenshot->pixels);
        if (screenshot->copy == NULL) {
            screenshot->refusal = "there was no memory for a copy of the picture";
        }
    }
}

void bp_screenshot_drop_pixels(bp_screenshot *screenshot) {
    if (!screenshot->is_there) {
        return;
    }
    (void)atomic_fetch_sub_explicit(screenshot->held_bytes, screenshot->byte_count,
                                    memory_order_relaxed);
    screenshot->byte_count = 0;
    screenshot->pixels.bytes = NULL;
    free(screenshot->copy);
    screenshot->copy = NULL;
    bp_pixel_owner_release(&screenshot->owner);
}

const bugpack_region *bp_screenshot_region(const bp_screenshot *screenshot) {
    return is_no_region(&screenshot->region) ? NULL : &screenshot->region;
}

static bugpack_status add_part(const bp_screenshot *screenshot, const char *name,
                               const bugpack_region *part, const bp_cancel_token *token,
                               bp_bundle *bundle, bugpack_error *error) {
    bugpack_writer writer;
    bugpack_error detail = BUGPACK_ERROR_INIT;
    bp_writer_init(&writer, SIZE_MAX / 4);
    bp_instant began = bp_clock_now();
    bugpack_status status = bp_bundle_begin(bundle, name, &writer, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    if (screenshot->pixels.bytes == NULL) {
        bp_writer_refuse(&writer, BP_ARTEFACT_OMITTED, "%s", screenshot->refusal);
    } else if (bp_png_encode(&screenshot->pixels, part->x, part->y, part->width, part->height,
                             bp_writer_sink, &writer, &detail) != BUGPACK_OK) {
        (void)bp_writer_flush(&writer, &detail); /* the reason, where it is the zip's */
        bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "%s", detail.message);
    }
    writer.line.captured_wall_ns = screenshot->captured.wall_ns;
    writer.line.duration_ns = bp_clock_monotonic_ns() - began.monotonic_ns;
    return bp_bundle_put(bundle, name, bp_cancel_check(token, error), &writer, error);
}

bugpack_status bp_screenshot_add(const bp_screenshot *screenshot, const bp_cancel_token *token,
                                 bp_bundle *bundle, bugpack_error *error) {
    const bugpack_region whole = {0, 0, screenshot->pixels.width, screenshot->pixels.height};
    bugpack_status status = add_part(screenshot, "screenshot.png", &whole, token, bundle, error);
    const bugpack_region *region = bp_screenshot_region(screenshot);
    if (status == BUGPACK_OK && region != NULL) {
        status = add_part(screenshot, "screenshot-region.png", region, token, bundle, error);
    }
    return status;
}

/* As of every write, a failure sticks. */
static bugpack_status keep_failure(bugpack_writer *writer, bugpack_status status) {
    if (status != BUGPACK_OK && writer->content.status == BUGPACK_OK) {
        writer->content.status = status;
    }
    return status;
}

static bugpack_status encode(const bp_pixels *pixels, bugpack_writer *writer) {
    return keep_failure(writer, bp_png_encode(pixels, 0, 0, pixels->width, pixels->height,
                                              bp_writer_sink, writer, NULL));
}

bugpack_status bugpack_write_picture(bugpack_writer *writer, const bugpack_picture *picture) {
    static const bugpack_region none = {0, 0, 0, 0};
    if (writer->picture == BP_PICTURE_WRITTEN || picture == NULL ||
        bp_screenshot_check(picture, &none, NULL) != BUGPACK_OK) {
        return keep_failure(writer, BUGPACK_ERR_INVALID);
    }
    bp_pixels pixels = read_pixels(picture);
    if (writer->picture == BP_PICTURE_ANY) {
        return encode(&pixels, writer);
    }
    if (copy_pixels(&pixels) == NULL) {
        return keep_failure(writer, BUGPACK_ERR_NO_MEMORY);
    }
    writer->pixels = pixels;
    writer->picture = BP_PICTURE_WRITTEN;
    return BUGPACK_OK;
}

int bp_screenshot_provide(bugpack_writer *writer, bugpack_provider_callback *provider,
                          void *context) {
    writer->picture = BP_PICTURE_WANTED;
    int result = provider(writer, context);
    bool is_omitted = writer->line.status == BP_ARTEFACT_OMITTED;
    if (result == 0 && writer->picture == BP_PICTURE_WANTED && !is_omitted) {
        result = bugpack_fail(writer, "the provider wrote no picture");
    }
    writer->picture = BP_PICTURE_ANY;
    if (result == 0 && !is_omitted && writer->pixels.bytes != NULL) {
        (void)encode(&writer->pixels, writer);
    }
    free((void *)(uintptr_t)writer->pixels.bytes);
    writer->pixels.bytes = NULL;
    return result;
}
