#include "hosts/spice/display.h"

#include <stdlib.h>

#include <spice/enums.h>

/* --- surfaces ----------------------------------------------------------------------------- */

static spice_surface *find_surface(spice_display *display, uint32_t id) {
    for (size_t i = 0; i < SPICE_SURFACES_MAX; i++) {
        if (display->surfaces[i].pixels != NULL && display->surfaces[i].id == id) {
            return &display->surfaces[i];
        }
    }
    return NULL;
}

const spice_surface *spice_display_primary(const spice_display *display) {
    for (size_t i = 0; i < SPICE_SURFACES_MAX; i++) {
        if (display->surfaces[i].pixels != NULL && display->surfaces[i].is_primary) {
            return &display->surfaces[i];
        }
    }
    return NULL;
}

void spice_display_clear(spice_display *display) {
    for (size_t i = 0; i < SPICE_SURFACES_MAX; i++) {
        free(display->surfaces[i].pixels);
    }
    *display = (spice_display){0};
}

static const char *create_surface(void *state, spice_reader *message) {
    spice_display *display = state;
    spice_surface fresh = {.id = spice_read_u32(message)};
    fresh.width = spice_read_u32(message);
    fresh.height = spice_read_u32(message);
    uint32_t format = spice_read_u32(message);
    fresh.is_primary = (spice_read_u32(message) & SPICE_SURFACE_FLAGS_PRIMARY) != 0;
    bool has_size = fresh.width > 0 && fresh.height > 0 && fresh.width <= SPICE_SURFACE_SIDE_MAX &&
                    fresh.height <= SPICE_SURFACE_SIDE_MAX;
    if (!has_size || find_surface(display, fresh.id) != NULL ||
        (fresh.is_primary && spice_display_primary(display) != NULL)) {
        return SPICE_MALFORMED;
    }
    if (format != SPICE_SURFACE_FMT_32_xRGB && format != SPICE_SURFACE_FMT_32_ARGB) {
        return "unimpl:surface_format";
    }
    uint64_t pixel_count = (uint64_t)fresh.width * fresh.height;
    size_t place = 0;
    while (place < SPICE_SURFACES_MAX && display->surfaces[place].pixels != NULL) {
        place++;
    }
    if (place < SPICE_SURFACES_MAX &&
        pixel_count <= SPICE_SURFACE_PIXELS_MAX - display->pixel_count) {
        fresh.pixels = calloc((size_t)pixel_count, sizeof *fresh.pixels);
    }
    if (fresh.pixels == NULL) {
        return "limit:surfaces";
    }
    display->surfaces[place] = fresh;
    display->pixel_count += pixel_count;
    return NULL;
}

static const char *destroy_surface(void *state, spice_reader *message) {
    spice_display *display = state;
    spice_surface *surface = find_surface(display, spice_read_u32(message));
    if (surface == NULL) {
        return SPICE_MALFORMED;
    }
    display->pixel_count -= (uint64_t)surface->width * surface->height;
    free(surface->pixels);
    *surface = (spice_surface){0};
    return NULL;
}

/* --- where a message draws ---------------------------------------------------------------- */

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

static bool is_empty(const rect *box) {
    return box->right <= box->left || box->bottom <= box->top;
}

static rect intersect(const rect *a, const rect *b) {
    rect both = {.top = a->top > b->top ? a->top : b->top,
                 .left = a->left > b->left ? a->left : b->left,
                 .bottom = a->bottom < b->bottom ? a->bottom : b->bottom,
                 .right = a->right < b->right ? a->right : b->right};
    return both;
}

/* Whether `box` has an area, all of it in a picture of that size. */
static bool is_inside(const rect *box, uint32_t width, uint32_t height) {
    return !is_empty(box) && box->left >= 0 && box->top >= 0 && box->right <= width &&
           box->bottom <= height;
}

/* What each drawing message begins with (DisplayBase of spice.proto). */
typedef struct target {
    spice_display *display;
    spice_surface *surface;
    rect box;
    bool has_clips; /* false: all of the box */
    uint32_t clip_count;
    spice_reader clips;
} target;

/* A message whose target is malformed is short from here on. */
static target read_target(spice_display *display, spice_reader *message) {
    target found = {.display = display};
    found.surface = find_surface(display, spice_read_u32(message));
    found.box = read_rect(message);
    uint8_t clip_type = spice_read_u8(message);
    if (clip_type == SPICE_CLIP_TYPE_RECTS) {
        found.has_clips = true;
        found.clip_count = spice_read_u32(message);
        found.clips = *message;
        (void)spice_read_bytes(message, (uint64_t)found.clip_count * 16);
    }
    message->is_short |= found.surface == NULL || clip_type > SPICE_CLIP_TYPE_RECTS ||
                         !is_inside(&found.box, found.surface->width, found.surface->height);
    return found;
}

/* --- pixels ------------------------------------------------------------------------------- */

/* What is drawn: a colour for the whole box, or rows of pixels, of which (left, top) falls on the
 * upper left corner of the box. */
typedef struct source {
    uint32_t color;       /* or the bits that are set in each pixel: the alpha of an opaque one */
    const uint8_t *bytes; /* NULL: the colour */
    size_t stride, pixel_bytes;
    uint32_t width, height;
    int64_t left, top;
    bool is_bottom_up;
} source;

/* Five bits of a colour as eight: its upper bits again at the end. */
static uint32_t widen(uint32_t five) {
    return (five & 31) << 3 | (five & 31) >> 2;
}

/* A loop for each size, for the compiler to make the most of. */
static void copy_row(uint32_t *to, const source *from, const uint8_t *at, size_t count) {
    uint32_t set = from->color;
    if (from->pixel_bytes == 4) {
        for (size_t i = 0; i < count; i++, at += 4) {
            to[i] =
                set | (uint32_t)at[3] << 24 | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
        }
    } else if (from->pixel_bytes == 3) {
        for (size_t i = 0; i < count; i++, at += 3) {
            to[i] = set | (uint32_t)at[2] << 16 | (uint32_t)at[1] << 8 | at[0];
        }
    } else {
        for (size_t i = 0; i < count; i++, at += 2) {
            uint32_t word = (uint32_t)at[1] << 8 | at[0];
            to[i] = set | widen(word >> 10) << 16 | widen(word >> 5) << 8 | widen(word);
        }
    }
}

static void draw_rect(const target *to, const rect *part, const source *from) {
    size_t width = (size_t)(part->right - part->left);
    for (int64_t y = part->top; y < part->bottom; y++) {
        uint32_t *row = to->surface->pixels + (size_t)y * to->surface->width + part->left;
        if (from->bytes == NULL) {
            for (size_t x = 0; x < width; x++) {
                row[x] = from->color;
            }
            continue;
        }
        size_t line = (size_t)(y - to->box.top + from->top);
        line = from->is_bottom_up ? from->height - 1 - line : line;
        size_t column = (size_t)(part->left - to->box.left + from->left);
        copy_row(row, from, from->bytes + line * from->stride + column * from->pixel_bytes, width);
    }
}

/* Draws a message that has been read, inside the clips. Those of a region do not overlap: together
 * they are no larger than the box. A server whose are would have us draw one surface a million
 * times. */
static const char *draw(const target *to, const source *from, const spice_reader *message) {
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    int64_t area = (to->box.right - to->box.left) * (to->box.bottom - to->box.top);
    spice_reader clips = to->clips;
    for (uint32_t i = 0; i < (to->has_clips ? to->clip_count : 1); i++) {
        rect clip = to->has_clips ? read_rect(&clips) : to->box;
        rect part = intersect(&clip, &to->box);
        if (is_empty(&part)) {
            continue;
        }
        area -= (part.right - part.left) * (part.bottom - part.top);
        if (area < 0) {
            return SPICE_MALFORMED;
        }
        draw_rect(to, &part, from);
    }
    to->display->draw_count++;
    return NULL;
}

/* --- fills -------------------------------------------------------------------------------- */

/* Reads a mask, which all drawing messages have. */
static bool has_mask(spice_reader *message) {
    (void)spice_read_bytes(message, 1 + 8);
    return spice_read_u32(message) != 0;
}

static const char *draw_fill(void *state, spice_reader *message) {
    target to = read_target(state, message);
    uint8_t brush = spice_read_u8(message);
    source from = {.color = 0};
    if (brush == SPICE_BRUSH_TYPE_SOLID) {
        from.color = 0xff000000 | spice_read_u32(message);
    } else if (brush == SPICE_BRUSH_TYPE_PATTERN) {
        return "unimpl:brush_pattern";
    } else if (brush != SPICE_BRUSH_TYPE_NONE) {
        return SPICE_MALFORMED;
    }
    uint16_t operation = spice_read_u16(message);
    if (has_mask(message)) {
        return "unimpl:draw_fill_mask";
    }
    if (operation != SPICE_ROPD_OP_PUT || brush == SPICE_BRUSH_TYPE_NONE) {
        return "unimpl:draw_fill_rop";
    }
    return draw(&to, &from, message);
}

static const char *draw_plain(spice_display *display, spice_reader *message, uint32_t color) {
    target to = read_target(display, message);
    source from = {.color = color};
    return has_mask(message) ? "unimpl:draw_plain_mask" : draw(&to, &from, message);
}

static const char *draw_blackness(void *state, spice_reader *message) {
    return draw_plain(state, message, 0xff000000);
}

static const char *draw_whiteness(void *state, spice_reader *message) {
    return draw_plain(state, message, 0xffffffff);
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

static const struct {
    const char *gap; /* NULL: it is decoded, if its pixels have bytes */
    size_t pixel_bytes;
    uint32_t set_bits;
} bitmap_formats[] = {
    [SPICE_BITMAP_FMT_1BIT_LE] = {.gap = "image:bitmap_1bit"},
    [SPICE_BITMAP_FMT_1BIT_BE] = {.gap = "image:bitmap_1bit"},
    [SPICE_BITMAP_FMT_4BIT_LE] = {.gap = "image:bitmap_4bit"},
    [SPICE_BITMAP_FMT_4BIT_BE] = {.gap = "image:bitmap_4bit"},
    [SPICE_BITMAP_FMT_8BIT] = {.gap = "image:bitmap_8bit"},
    [SPICE_BITMAP_FMT_8BIT_A] = {.gap = "image:bitmap_8bit_alpha"},
    [SPICE_BITMAP_FMT_16BIT] = {.pixel_bytes = 2, .set_bits = 0xff000000},
    [SPICE_BITMAP_FMT_24BIT] = {.pixel_bytes = 3, .set_bits = 0xff000000},
    [SPICE_BITMAP_FMT_32BIT] = {.pixel_bytes = 4, .set_bits = 0xff000000},
    [SPICE_BITMAP_FMT_RGBA] = {.pixel_bytes = 4},
};

/* BitmapData of spice.proto, whose pixels stand right behind it. */
static const char *read_bitmap(spice_reader *image, source *ret_source) {
    uint8_t format = spice_read_u8(image);
    uint8_t flags = spice_read_u8(image);
    source found = {.width = spice_read_u32(image)};
    found.height = spice_read_u32(image);
    found.stride = spice_read_u32(image);
    found.is_bottom_up = (flags & SPICE_BITMAP_FLAGS_TOP_DOWN) == 0;
    /* The palette, or its id: bitmaps that have one are not decoded. */
    (void)spice_read_bytes(image, flags & SPICE_BITMAP_FLAGS_PAL_FROM_CACHE ? 8 : 4);
    if (image->is_short || format >= sizeof bitmap_formats / sizeof bitmap_formats[0]) {
        return SPICE_MALFORMED;
    }
    if (bitmap_formats[format].gap != NULL) {
        return bitmap_formats[format].gap;
    }
    found.pixel_bytes = bitmap_formats[format].pixel_bytes;
    found.color = bitmap_formats[format].set_bits;
    found.bytes = spice_read_bytes(image, (uint64_t)found.stride * found.height);
    if (image->is_short || found.pixel_bytes == 0 ||
        found.stride < (uint64_t)found.width * found.pixel_bytes) {
        return SPICE_MALFORMED;
    }
    *ret_source = found;
    return NULL;
}

static const char *read_image(const spice_reader *message, uint32_t offset, source *ret_source) {
    spice_reader image = spice_reader_at(message, offset);
    (void)spice_read_bytes(&image, 8); /* its id, for caches */
    uint8_t type = spice_read_u8(&image);
    (void)spice_read_bytes(&image, 1 + 4 + 4); /* flags, width, height */
    if (image.is_short || offset == 0) {
        return SPICE_MALFORMED;
    }
    if (type == SPICE_IMAGE_TYPE_BITMAP) {
        return read_bitmap(&image, ret_source);
    }
    bool is_known = type < sizeof image_gaps / sizeof image_gaps[0] && image_gaps[type] != NULL;
    return is_known ? image_gaps[type] : "image:unknown";
}

static const char *draw_copy(void *state, spice_reader *message) {
    target to = read_target(state, message);
    uint32_t offset = spice_read_u32(message);
    rect area = read_rect(message);
    uint16_t operation = spice_read_u16(message);
    (void)spice_read_u8(message); /* how to scale, which matters only where the sizes differ */
    bool is_masked = has_mask(message);
    source from;
    const char *gap = read_image(message, offset, &from);
    if (message->is_short || is_empty(&area)) {
        return SPICE_MALFORMED;
    }
    if (gap != NULL) {
        return gap;
    }
    if (!is_inside(&area, from.width, from.height)) {
        return SPICE_MALFORMED;
    }
    if (is_masked) {
        return "unimpl:draw_copy_mask";
    }
    if (operation != SPICE_ROPD_OP_PUT) {
        return "unimpl:draw_copy_rop";
    }
    if (area.right - area.left != to.box.right - to.box.left ||
        area.bottom - area.top != to.box.bottom - to.box.top) {
        return "unimpl:draw_copy_scaled";
    }
    from.left = area.left;
    from.top = area.top;
    return draw(&to, &from, message);
}

/* Copies inside a surface, by a bitmap of 32 bits: the two places may overlap. */
static const char *copy_bits(void *state, spice_reader *message) {
    target to = read_target(state, message);
    rect origin = {.left = spice_read_i32(message)};
    origin.top = spice_read_i32(message);
    origin.right = origin.left + to.box.right - to.box.left;
    origin.bottom = origin.top + to.box.bottom - to.box.top;
    if (message->is_short || !is_inside(&origin, to.surface->width, to.surface->height)) {
        return SPICE_MALFORMED;
    }
    size_t width = (size_t)(origin.right - origin.left), count = 0;
    uint8_t *copy = malloc(width * (size_t)(origin.bottom - origin.top) * 4);
    if (copy == NULL) {
        return "limit:memory";
    }
    for (int64_t y = origin.top; y < origin.bottom; y++) {
        const uint32_t *row = to.surface->pixels + (size_t)y * to.surface->width + origin.left;
        for (size_t x = 0; x < width; x++, count += 4) {
            spice_put(copy + count, row[x], 4);
        }
    }
    source from = {.bytes = copy, .stride = width * 4, .pixel_bytes = 4};
    const char *gap = draw(&to, &from, message);
    free(copy);
    return gap;
}

/* --- the rest ----------------------------------------------------------------------------- */

static const char *mark(void *state, spice_reader *message) {
    (void)message;
    ((spice_display *)state)->is_marked = true;
    return NULL;
}

static const char *reset(void *state, spice_reader *message) {
    spice_display *display = state;
    uint64_t draw_count = display->draw_count;
    (void)message;
    spice_display_clear(display);
    display->draw_count = draw_count;
    return NULL;
}

/* What is accepted is about caches and streams: the client asks for no cache, and each
 * stream_create is a gap. */
const spice_opcode spice_display_opcodes[] = {
    {SPICE_MSG_DISPLAY_MODE, "mode", 0, NULL},
    {SPICE_MSG_DISPLAY_MARK, "mark", 0, mark},
    {SPICE_MSG_DISPLAY_RESET, "reset", 0, reset},
    {SPICE_MSG_DISPLAY_COPY_BITS, "copy_bits", 0, copy_bits},
    {SPICE_MSG_DISPLAY_INVAL_LIST, "inval_list", 0, spice_accept},
    {SPICE_MSG_DISPLAY_INVAL_ALL_PIXMAPS, "inval_all_pixmaps", 0, spice_accept},
    {SPICE_MSG_DISPLAY_INVAL_PALETTE, "inval_palette", 0, spice_accept},
    {SPICE_MSG_DISPLAY_INVAL_ALL_PALETTES, "inval_all_palettes", 0, spice_accept},
    {SPICE_MSG_DISPLAY_STREAM_CREATE, "stream_create", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_DATA, "stream_data", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_CLIP, "stream_clip", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_DESTROY, "stream_destroy", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_DESTROY_ALL, "stream_destroy_all", 0, spice_accept},
    {SPICE_MSG_DISPLAY_DRAW_FILL, "draw_fill", 0, draw_fill},
    {SPICE_MSG_DISPLAY_DRAW_OPAQUE, "draw_opaque", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_COPY, "draw_copy", 0, draw_copy},
    {SPICE_MSG_DISPLAY_DRAW_BLEND, "draw_blend", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_BLACKNESS, "draw_blackness", 0, draw_blackness},
    {SPICE_MSG_DISPLAY_DRAW_WHITENESS, "draw_whiteness", 0, draw_whiteness},
    {SPICE_MSG_DISPLAY_DRAW_INVERS, "draw_invers", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_ROP3, "draw_rop3", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_STROKE, "draw_stroke", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_TEXT, "draw_text", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_TRANSPARENT, "draw_transparent", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_ALPHA_BLEND, "draw_alpha_blend", 0, NULL},
    {SPICE_MSG_DISPLAY_SURFACE_CREATE, "surface_create", 20, create_surface},
    {SPICE_MSG_DISPLAY_SURFACE_DESTROY, "surface_destroy", 4, destroy_surface},
    {SPICE_MSG_DISPLAY_STREAM_DATA_SIZED, "stream_data_sized", 0, NULL},
    {SPICE_MSG_DISPLAY_MONITORS_CONFIG, "monitors_config", 0, NULL},
    {SPICE_MSG_DISPLAY_DRAW_COMPOSITE, "draw_composite", 0, NULL},
    {SPICE_MSG_DISPLAY_STREAM_ACTIVATE_REPORT, "stream_activate_report", 0, NULL},
    {SPICE_MSG_DISPLAY_GL_SCANOUT_UNIX, "gl_scanout_unix", 0, NULL},
    {SPICE_MSG_DISPLAY_GL_DRAW, "gl_draw", 0, NULL},
    {SPICE_MSG_DISPLAY_QUALITY_INDICATOR, "quality_indicator", 0, NULL},
    {.name = NULL},
};
