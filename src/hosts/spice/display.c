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

static void free_surface(spice_display *display, spice_surface *surface) {
    display->pixel_count -= (uint64_t)surface->width * surface->height;
    free(surface->pixels);
    *surface = (spice_surface){0};
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
    fresh.format = spice_read_u32(message);
    fresh.is_primary = (spice_read_u32(message) & SPICE_SURFACE_FLAGS_PRIMARY) != 0;
    bool has_size = fresh.width > 0 && fresh.height > 0 && fresh.width <= SPICE_SURFACE_SIDE_MAX &&
                    fresh.height <= SPICE_SURFACE_SIDE_MAX;
    if (message->is_short || !has_size || find_surface(display, fresh.id) != NULL ||
        (fresh.is_primary && spice_display_primary(display) != NULL)) {
        return SPICE_MALFORMED;
    }
    if (fresh.format != SPICE_SURFACE_FMT_32_xRGB && fresh.format != SPICE_SURFACE_FMT_32_ARGB) {
        return "unimpl:surface_format";
    }
    uint64_t pixel_count = (uint64_t)fresh.width * fresh.height;
    spice_surface *place = display->surfaces;
    while (place < display->surfaces + SPICE_SURFACES_MAX && place->pixels != NULL) {
        place++;
    }
    if (place == display->surfaces + SPICE_SURFACES_MAX ||
        pixel_count > SPICE_SURFACE_PIXELS_MAX - display->pixel_count) {
        return "limit:surfaces";
    }
    fresh.pixels = calloc((size_t)pixel_count, sizeof *fresh.pixels);
    if (fresh.pixels == NULL) {
        return "limit:surfaces";
    }
    *place = fresh;
    display->pixel_count += pixel_count;
    return NULL;
}

static const char *destroy_surface(void *state, spice_reader *message) {
    spice_display *display = state;
    spice_surface *surface = find_surface(display, spice_read_u32(message));
    if (message->is_short || surface == NULL) {
        return SPICE_MALFORMED;
    }
    free_surface(display, surface);
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

static bool contains(const rect *outer, const rect *inner) {
    return inner->left >= outer->left && inner->right <= outer->right && inner->top >= outer->top &&
           inner->bottom <= outer->bottom;
}

/* What each drawing message begins with (DisplayBase of spice.proto). */
typedef struct target {
    spice_surface *surface;
    rect box;
    uint32_t clip_count; /* 0 and no clips: all of the box */
    spice_reader clips;
    bool has_clips;
} target;

static const char *read_target(spice_display *display, spice_reader *message, target *ret_target) {
    target found = {.surface = find_surface(display, spice_read_u32(message))};
    found.box = read_rect(message);
    uint8_t clip_type = spice_read_u8(message);
    if (clip_type == SPICE_CLIP_TYPE_RECTS) {
        found.has_clips = true;
        found.clip_count = spice_read_u32(message);
        found.clips = *message;
        if (found.clip_count > message->size / 16 ||
            spice_read_bytes(message, (size_t)found.clip_count * 16) == NULL) {
            return SPICE_MALFORMED;
        }
    }
    if (message->is_short || found.surface == NULL || clip_type > SPICE_CLIP_TYPE_RECTS) {
        return SPICE_MALFORMED;
    }
    rect all = {.right = found.surface->width, .bottom = found.surface->height};
    if (is_empty(&found.box) || !contains(&all, &found.box)) {
        return SPICE_MALFORMED;
    }
    *ret_target = found;
    return NULL;
}

/* --- pixels ------------------------------------------------------------------------------- */

typedef void row_converter(uint32_t *to, const uint8_t *from, size_t count);

/* Compilers make one load of it. */
static uint32_t load_word(const uint8_t *from) {
    return (uint32_t)from[3] << 24 | (uint32_t)from[2] << 16 | (uint32_t)from[1] << 8 | from[0];
}

static void copy_row(uint32_t *to, const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] = load_word(from + 4 * i);
    }
}

static void copy_opaque_row(uint32_t *to, const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[i] = load_word(from + 4 * i) | 0xff000000;
    }
}

static void copy_row_24(uint32_t *to, const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++, from += 3) {
        to[i] = 0xff000000 | (uint32_t)from[2] << 16 | (uint32_t)from[1] << 8 | from[0];
    }
}

/* Five bits of a colour as eight: its upper bits again at the end. */
static uint32_t widen(uint32_t five) {
    return (five & 31) << 3 | (five & 31) >> 2;
}

static void copy_row_16(uint32_t *to, const uint8_t *from, size_t count) {
    for (size_t i = 0; i < count; i++, from += 2) {
        uint32_t word = (uint32_t)from[1] << 8 | from[0];
        to[i] = 0xff000000 | widen(word >> 10) << 16 | widen(word >> 5) << 8 | widen(word);
    }
}

/* What is drawn: a colour for the whole box, or rows of pixels, of which (left, top) falls on the
 * upper left corner of the box. */
typedef struct source {
    uint32_t color;
    const uint8_t *bytes; /* NULL: the colour */
    size_t stride, pixel_bytes;
    uint32_t width, height;
    int64_t left, top;
    bool is_bottom_up;
    row_converter *convert;
} source;

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
        from->convert(row, from->bytes + line * from->stride + column * from->pixel_bytes, width);
    }
}

/* Draws inside the clips. Those of a region do not overlap: together they are no larger than the
 * box. A server whose are would have us draw one surface a million times. */
static const char *draw(spice_display *display, const target *to, const source *from) {
    int64_t area = (to->box.right - to->box.left) * (to->box.bottom - to->box.top);
    spice_reader clips = to->clips;
    if (!to->has_clips) {
        draw_rect(to, &to->box, from);
    }
    for (uint32_t i = 0; i < to->clip_count; i++) {
        rect clip = read_rect(&clips);
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
    display->draw_count++;
    return NULL;
}

/* --- fills -------------------------------------------------------------------------------- */

/* Reads what follows a source: the raster operation has to be a plain one, and no mask. */
static bool has_mask(spice_reader *message) {
    (void)spice_read_u8(message);
    (void)spice_read_bytes(message, 8);
    return spice_read_u32(message) != 0;
}

static const char *draw_fill(void *state, spice_reader *message) {
    target to;
    const char *gap = read_target(state, message, &to);
    if (gap != NULL) {
        return gap;
    }
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
    if (has_mask(message) && !message->is_short) {
        return "unimpl:draw_fill_mask";
    }
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    if (operation != SPICE_ROPD_OP_PUT || brush == SPICE_BRUSH_TYPE_NONE) {
        return "unimpl:draw_fill_rop";
    }
    return draw(state, &to, &from);
}

static const char *draw_plain(spice_display *display, spice_reader *message, uint32_t color) {
    target to;
    const char *gap = read_target(display, message, &to);
    if (gap != NULL) {
        return gap;
    }
    bool is_masked = has_mask(message);
    if (message->is_short) {
        return SPICE_MALFORMED;
    }
    source from = {.color = color};
    return is_masked ? "unimpl:draw_plain_mask" : draw(display, &to, &from);
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
static const struct {
    uint8_t type;
    const char *gap;
} image_gaps[] = {
    {SPICE_IMAGE_TYPE_QUIC, "image:quic"},
    {SPICE_IMAGE_TYPE_LZ_PLT, "image:lz_plt"},
    {SPICE_IMAGE_TYPE_LZ_RGB, "image:lz_rgb"},
    {SPICE_IMAGE_TYPE_GLZ_RGB, "image:glz_rgb"},
    {SPICE_IMAGE_TYPE_FROM_CACHE, "image:from_cache"},
    {SPICE_IMAGE_TYPE_SURFACE, "image:surface"},
    {SPICE_IMAGE_TYPE_JPEG, "image:jpeg"},
    {SPICE_IMAGE_TYPE_FROM_CACHE_LOSSLESS, "image:from_cache_lossless"},
    {SPICE_IMAGE_TYPE_ZLIB_GLZ_RGB, "image:zlib_glz_rgb"},
    {SPICE_IMAGE_TYPE_JPEG_ALPHA, "image:jpeg_alpha"},
    {SPICE_IMAGE_TYPE_LZ4, "image:lz4"},
};

static const struct {
    uint8_t format;
    size_t pixel_bytes;
    row_converter *convert;
    const char *gap;
} bitmap_formats[] = {
    {SPICE_BITMAP_FMT_1BIT_LE, 0, NULL, "image:bitmap_1bit"},
    {SPICE_BITMAP_FMT_1BIT_BE, 0, NULL, "image:bitmap_1bit"},
    {SPICE_BITMAP_FMT_4BIT_LE, 0, NULL, "image:bitmap_4bit"},
    {SPICE_BITMAP_FMT_4BIT_BE, 0, NULL, "image:bitmap_4bit"},
    {SPICE_BITMAP_FMT_8BIT, 0, NULL, "image:bitmap_8bit"},
    {SPICE_BITMAP_FMT_16BIT, 2, copy_row_16, NULL},
    {SPICE_BITMAP_FMT_24BIT, 3, copy_row_24, NULL},
    {SPICE_BITMAP_FMT_32BIT, 4, copy_opaque_row, NULL},
    {SPICE_BITMAP_FMT_RGBA, 4, copy_row, NULL},
    {SPICE_BITMAP_FMT_8BIT_A, 0, NULL, "image:bitmap_8bit_alpha"},
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
    size_t row = 0;
    size_t row_count = sizeof bitmap_formats / sizeof bitmap_formats[0];
    while (row < row_count && bitmap_formats[row].format != format) {
        row++;
    }
    if (image->is_short || row == row_count) {
        return SPICE_MALFORMED;
    }
    if (bitmap_formats[row].gap != NULL) {
        return bitmap_formats[row].gap;
    }
    found.pixel_bytes = bitmap_formats[row].pixel_bytes;
    found.convert = bitmap_formats[row].convert;
    uint64_t byte_count = (uint64_t)found.stride * found.height;
    if (found.stride < (uint64_t)found.width * found.pixel_bytes ||
        byte_count > image->size - image->at) {
        return SPICE_MALFORMED;
    }
    found.bytes = image->body + image->at;
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
    for (size_t i = 0; i < sizeof image_gaps / sizeof image_gaps[0]; i++) {
        if (image_gaps[i].type == type) {
            return image_gaps[i].gap;
        }
    }
    return "image:unknown";
}

static const char *draw_copy(void *state, spice_reader *message) {
    target to;
    const char *gap = read_target(state, message, &to);
    if (gap != NULL) {
        return gap;
    }
    uint32_t offset = spice_read_u32(message);
    rect area = read_rect(message);
    uint16_t operation = spice_read_u16(message);
    (void)spice_read_u8(message); /* how to scale, which matters only where the sizes differ */
    bool is_masked = has_mask(message);
    if (message->is_short || is_empty(&area)) {
        return SPICE_MALFORMED;
    }
    source from;
    gap = read_image(message, offset, &from);
    if (gap != NULL) {
        return gap;
    }
    rect image = {.right = from.width, .bottom = from.height};
    if (!contains(&image, &area)) {
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
    return draw(state, &to, &from);
}

static void copy_words(uint32_t *to, const uint8_t *from, size_t count) {
    memcpy(to, from, count * sizeof *to);
}

/* Copies inside a surface, by a copy of their own: the two places may overlap. */
static const char *copy_bits(void *state, spice_reader *message) {
    target to;
    const char *gap = read_target(state, message, &to);
    if (gap != NULL) {
        return gap;
    }
    int64_t left = spice_read_i32(message);
    int64_t top = spice_read_i32(message);
    rect all = {.right = to.surface->width, .bottom = to.surface->height};
    int64_t width = to.box.right - to.box.left;
    int64_t height = to.box.bottom - to.box.top;
    rect origin = {.left = left, .top = top, .right = left + width, .bottom = top + height};
    if (message->is_short || !contains(&all, &origin)) {
        return SPICE_MALFORMED;
    }
    size_t row_bytes = (size_t)width * sizeof(uint32_t);
    uint8_t *copy = malloc(row_bytes * (size_t)height);
    if (copy == NULL) {
        return "limit:memory";
    }
    for (int64_t y = 0; y < height; y++) {
        memcpy(copy + (size_t)y * row_bytes,
               to.surface->pixels + (size_t)(top + y) * to.surface->width + left, row_bytes);
    }
    source from = {.bytes = copy, .stride = row_bytes, .pixel_bytes = 4, .convert = copy_words};
    gap = draw(state, &to, &from);
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
    (void)message;
    uint64_t draw_count = ((spice_display *)state)->draw_count;
    spice_display_clear(state);
    ((spice_display *)state)->draw_count = draw_count;
    return NULL;
}

/* There is no cache and no stream here that these could be about: the client asks for no cache, and
 * each stream_create is a gap. */
static const char *nothing(void *state, spice_reader *message) {
    (void)state;
    (void)message;
    return NULL;
}

static const spice_opcode display_rows[] = {
    {SPICE_MSG_DISPLAY_MODE, "mode", NULL},
    {SPICE_MSG_DISPLAY_MARK, "mark", mark},
    {SPICE_MSG_DISPLAY_RESET, "reset", reset},
    {SPICE_MSG_DISPLAY_COPY_BITS, "copy_bits", copy_bits},
    {SPICE_MSG_DISPLAY_INVAL_LIST, "inval_list", nothing},
    {SPICE_MSG_DISPLAY_INVAL_ALL_PIXMAPS, "inval_all_pixmaps", nothing},
    {SPICE_MSG_DISPLAY_INVAL_PALETTE, "inval_palette", nothing},
    {SPICE_MSG_DISPLAY_INVAL_ALL_PALETTES, "inval_all_palettes", nothing},
    {SPICE_MSG_DISPLAY_STREAM_CREATE, "stream_create", NULL},
    {SPICE_MSG_DISPLAY_STREAM_DATA, "stream_data", NULL},
    {SPICE_MSG_DISPLAY_STREAM_CLIP, "stream_clip", NULL},
    {SPICE_MSG_DISPLAY_STREAM_DESTROY, "stream_destroy", NULL},
    {SPICE_MSG_DISPLAY_STREAM_DESTROY_ALL, "stream_destroy_all", nothing},
    {SPICE_MSG_DISPLAY_DRAW_FILL, "draw_fill", draw_fill},
    {SPICE_MSG_DISPLAY_DRAW_OPAQUE, "draw_opaque", NULL},
    {SPICE_MSG_DISPLAY_DRAW_COPY, "draw_copy", draw_copy},
    {SPICE_MSG_DISPLAY_DRAW_BLEND, "draw_blend", NULL},
    {SPICE_MSG_DISPLAY_DRAW_BLACKNESS, "draw_blackness", draw_blackness},
    {SPICE_MSG_DISPLAY_DRAW_WHITENESS, "draw_whiteness", draw_whiteness},
    {SPICE_MSG_DISPLAY_DRAW_INVERS, "draw_invers", NULL},
    {SPICE_MSG_DISPLAY_DRAW_ROP3, "draw_rop3", NULL},
    {SPICE_MSG_DISPLAY_DRAW_STROKE, "draw_stroke", NULL},
    {SPICE_MSG_DISPLAY_DRAW_TEXT, "draw_text", NULL},
    {SPICE_MSG_DISPLAY_DRAW_TRANSPARENT, "draw_transparent", NULL},
    {SPICE_MSG_DISPLAY_DRAW_ALPHA_BLEND, "draw_alpha_blend", NULL},
    {SPICE_MSG_DISPLAY_SURFACE_CREATE, "surface_create", create_surface},
    {SPICE_MSG_DISPLAY_SURFACE_DESTROY, "surface_destroy", destroy_surface},
    {SPICE_MSG_DISPLAY_STREAM_DATA_SIZED, "stream_data_sized", NULL},
    {SPICE_MSG_DISPLAY_MONITORS_CONFIG, "monitors_config", NULL},
    {SPICE_MSG_DISPLAY_DRAW_COMPOSITE, "draw_composite", NULL},
    {SPICE_MSG_DISPLAY_STREAM_ACTIVATE_REPORT, "stream_activate_report", NULL},
    {SPICE_MSG_DISPLAY_GL_SCANOUT_UNIX, "gl_scanout_unix", NULL},
    {SPICE_MSG_DISPLAY_GL_DRAW, "gl_draw", NULL},
    {SPICE_MSG_DISPLAY_QUALITY_INDICATOR, "quality_indicator", NULL},
};

const spice_opcodes spice_display_opcodes = {display_rows,
                                             sizeof display_rows / sizeof display_rows[0]};
