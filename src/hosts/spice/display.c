#include "hosts/spice/display.h"

#include <stdlib.h>

#include <spice/enums.h>

/* --- the surface -------------------------------------------------------------------------- */

/* Others than the primary surface have other ids, and are never shown. */
enum { primary_id = 0, pixel_bytes = 4 };

void spice_display_clear(spice_display *display) {
    free(display->pixels);
    *display = (spice_display){0};
}

static const char *create_surface(void *state, spice_reader *message) {
    spice_display *display = state;
    uint32_t id = spice_read_u32(message);
    uint32_t width = spice_read_u32(message);
    uint32_t height = spice_read_u32(message);
    uint32_t format = spice_read_u32(message);
    if (id != primary_id) {
        return "unimpl:surface_offscreen";
    }
    if (display->pixels != NULL || width - 1 >= SPICE_SURFACE_SIDE_MAX ||
        height - 1 >= SPICE_SURFACE_SIDE_MAX) {
        return SPICE_MALFORMED;
    }
    if (format != SPICE_SURFACE_FMT_32_xRGB && format != SPICE_SURFACE_FMT_32_ARGB) {
        return "unimpl:surface_format";
    }
    size_t pixel_count = (size_t)width * height;
    if (pixel_count <= SPICE_SURFACE_PIXELS_MAX) {
        display->pixels = calloc(pixel_count, pixel_bytes);
    }
    if (display->pixels == NULL) {
        return "limit:surfaces";
    }
    display->width = width;
    display->height = height;
    return NULL;
}

/* Frees the surface, but the count of drawn messages goes on. */
static const char *reset(void *state, spice_reader *message) {
    spice_display *display = state;
    uint64_t draw_count = display->draw_count;
    (void)message;
    spice_display_clear(display);
    display->draw_count = draw_count;
    return NULL;
}

static const char *destroy_surface(void *state, spice_reader *message) {
    return spice_read_u32(message) == primary_id ? reset(state, message)
                                                 : "unimpl:surface_offscreen";
}

/* --- drawing ------------------------------------------------------------------------------ */

typedef struct rect {
    int64_t top, left, bottom, right; /* of 32 bits on the wire: differences do not overflow */
} rect;

static rect read_rect(spice_reader *reader) {
    rect box = {.top = spice_read_i32(reader)};
    box.left = spice_read_i32(reader);
    box.bottom = spice_read_i32(reader);
    box.right = spice_read_i32(reader);
    return box;
}

/* True if `box` has an area, all of it in a picture of that size. */
static bool is_inside(const rect *box, uint32_t width, uint32_t height) {
    return box->left < box->right && box->top < box->bottom && box->left >= 0 && box->top >= 0 &&
           box->right <= width && box->bottom <= height;
}

/* The head of each drawing message (DisplayBase of spice.proto): the box that it draws in. */
static const char *read_box(const spice_display *display, spice_reader *message, rect *ret_box) {
    uint32_t id = spice_read_u32(message);
    *ret_box = read_rect(message);
    uint8_t clip_type = spice_read_u8(message);
    if (id != primary_id) {
        return "unimpl:surface_offscreen";
    }
    if (display->pixels == NULL || !is_inside(ret_box, display->width, display->height)) {
        return SPICE_MALFORMED;
    }
    return clip_type == SPICE_CLIP_TYPE_NONE ? NULL : "unimpl:clip";
}

/* Reads a mask, which all drawing messages have. */
static bool has_mask(spice_reader *message) {
    (void)spice_read_bytes(message, 1 + 8);
    return spice_read_u32(message) != 0;
}

static uint8_t *pixel_at(const spice_display *display, int64_t x, int64_t y) {
    return display->pixels + ((size_t)y * display->width + (size_t)x) * pixel_bytes;
}

static const char *draw_fill(void *state, spice_reader *message) {
    spice_display *display = state;
    rect box;
    const char *gap = read_box(display, message, &box);
    uint8_t brush = spice_read_u8(message);
    if (gap != NULL || brush != SPICE_BRUSH_TYPE_SOLID) {
        return gap ? gap : "unimpl:brush";
    }
    uint32_t color = spice_read_u32(message);
    uint16_t operation = spice_read_u16(message);
    bool is_masked = has_mask(message);
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    if (is_masked || operation != SPICE_ROPD_OP_PUT) {
        return "unimpl:draw_fill_rop";
    }
    for (int64_t y = box.top; y < box.bottom; y++) {
        for (int64_t x = box.left; x < box.right; x++) {
            spice_put(pixel_at(display, x, y), color, pixel_bytes);
        }
    }
    display->draw_count++;
    return NULL;
}

/* --- images ------------------------------------------------------------------------------- */

/* The types of images that are known and not decoded. A table of keys, because keys are literals.
 */
static const char *const image_gaps[] = {
    [SPICE_IMAGE_TYPE_QUIC] = "image:quic",
    [SPICE_IMAGE_TYPE_LZ_PLT] = "image:lz_plt",
    [SPICE_IMAGE_TYPE_LZ_RGB] = "image:lz_rgb",
    [SPICE_IMAGE_TYPE_GLZ_RGB] = "image:glz_rgb",
    [SPICE_IMAGE_TYPE_FROM_CACHE] = "image:from_cache",
    [SPICE_IMAGE_TYPE_SURFACE] = "image:surface",
    [SPICE_IMAGE_TYPE_JPEG] = "image:jpeg",
    [SPICE_IMAGE_TYPE_FROM_CACHE_LOSSLESS] = "image:from_cache_lossless",
    [SPICE_IMAGE_TYPE_ZLIB_GLZ_RGB] = "image:zlib_glz_rgb",
    [SPICE_IMAGE_TYPE_JPEG_ALPHA] = "image:jpeg_alpha",
    [SPICE_IMAGE_TYPE_LZ4] = "image:lz4",
};

typedef struct bitmap {
    const uint8_t *rows;
    size_t stride;
    uint32_t width, height;
    bool is_bottom_up;
} bitmap;

/* The image of a message, and BitmapData of spice.proto, whose pixels stand right behind it. */
static const char *read_image(const spice_reader *message, uint32_t offset, bitmap *ret_bitmap) {
    spice_reader image = spice_reader_at(message, offset);
    (void)spice_read_bytes(&image, 8); /* its id, for caches */
    uint8_t type = spice_read_u8(&image);
    (void)spice_read_bytes(&image, 1 + 4 + 4); /* flags, width, height */
    if (image.is_short || offset == 0) {
        return SPICE_MALFORMED;
    }
    if (type != SPICE_IMAGE_TYPE_BITMAP) {
        bool is_known = type < sizeof image_gaps / sizeof image_gaps[0] && image_gaps[type] != NULL;
        return is_known ? image_gaps[type] : "image:unknown";
    }
    uint8_t format = spice_read_u8(&image);
    uint8_t flags = spice_read_u8(&image);
    bitmap found = {.width = spice_read_u32(&image)};
    found.height = spice_read_u32(&image);
    found.stride = spice_read_u32(&image);
    found.is_bottom_up = (flags & SPICE_BITMAP_FLAGS_TOP_DOWN) == 0;
    (void)spice_read_bytes(&image, 4); /* the palette, which these bitmaps do not have */
    if (!image.is_short && format != SPICE_BITMAP_FMT_32BIT) {
        return "image:bitmap_format";
    }
    found.rows = spice_read_bytes(&image, (uint64_t)found.stride * found.height);
    if (image.is_short || found.stride < (uint64_t)found.width * pixel_bytes) {
        return SPICE_MALFORMED;
    }
    *ret_bitmap = found;
    return NULL;
}

static const char *draw_copy(void *state, spice_reader *message) {
    spice_display *display = state;
    rect box;
    bitmap from;
    const char *gap = read_box(display, message, &box);
    uint32_t offset = spice_read_u32(message);
    rect area = read_rect(message);
    uint16_t operation = spice_read_u16(message);
    (void)spice_read_u8(message); /* how to scale, which matters only where the sizes differ */
    bool is_masked = has_mask(message);
    gap = gap ? gap : read_image(message, offset, &from);
    if (message->is_short || gap != NULL) {
        return gap ? gap : SPICE_MALFORMED;
    }
    if (!is_inside(&area, from.width, from.height)) {
        return SPICE_MALFORMED;
    }
    int64_t width = area.right - area.left, height = area.bottom - area.top;
    if (is_masked || operation != SPICE_ROPD_OP_PUT) {
        return "unimpl:draw_copy_rop";
    }
    if (width != box.right - box.left || height != box.bottom - box.top) {
        return "unimpl:draw_copy_scaled";
    }
    for (int64_t y = 0; y < height; y++) {
        size_t line = (size_t)(area.top + y);
        line = from.is_bottom_up ? from.height - 1 - line : line;
        memcpy(pixel_at(display, box.left, box.top + y),
               from.rows + line * from.stride + (size_t)area.left * pixel_bytes,
               (size_t)width * pixel_bytes);
    }
    display->draw_count++;
    return NULL;
}

/* What is accepted is about caches and streams: the client asks for no cache, and each
 * stream_create is a gap. */
const spice_opcode spice_display_opcodes[] = {
    {SPICE_MSG_DISPLAY_MODE, "mode", 0, NULL},
    {SPICE_MSG_DISPLAY_MARK, "mark", 0, spice_accept},
    {SPICE_MSG_DISPLAY_RESET, "reset", 0, reset},
    {SPICE_MSG_DISPLAY_COPY_BITS, "copy_bits", 0, NULL},
    {SPICE_MSG_DISPLAY_INVAL_LIST, "inval_list", 0, spice_accept},
    {SPICE_MSG_DISPLAY_INVAL_ALL_PIXMAPS, "inval_all_pixmaps", 0, spice_accept},
    {SPICE_MSG_DISPLAY_INVAL_PALETTE, "inval_palette", 0, spice_accept},
    {SPICE_MSG_DISPLAY_INVAL_ALL_PALETTES, "inval_all_palettes", 0, spice_accept},
    {SPICE_MSG_DISPLAY_STREAM_CREATE, "stream_create", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_DATA, "stream_data", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_DESTROY_ALL, "stream_destroy_all", 0, spice_accept},
    {SPICE_MSG_DISPLAY_DRAW_FILL, "draw_fill", 0, draw_fill},
    {SPICE_MSG_DISPLAY_DRAW_OPAQUE, "draw_opaque", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_COPY, "draw_copy", 0, draw_copy},
    {SPICE_MSG_DISPLAY_DRAW_BLEND, "draw_blend", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_BLACKNESS, "draw_blackness", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_WHITENESS, "draw_whiteness", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_INVERS, "draw_invers", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_ROP3, "draw_rop3", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_STROKE, "draw_stroke", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_TEXT, "draw_text", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_TRANSPARENT, "draw_transparent", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_ALPHA_BLEND, "draw_alpha_blend", 0, NULL},
    {SPICE_MSG_DISPLAY_SURFACE_CREATE, "surface_create", 20, create_surface},
    {SPICE_MSG_DISPLAY_SURFACE_DESTROY, "surface_destroy", 4, destroy_surface},
    {SPICE_MSG_DISPLAY_MONITORS_CONFIG, "monitors_config", 0, NULL},
    {.name = NULL},
};
