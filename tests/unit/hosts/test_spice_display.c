/*
 * What bugpack-spice draws of a server's messages, and what it refuses.
 */
#include <spice/enums.h>

#include "hosts/spice/display.h"
#include "unit/unit.h"

/* A message that is put together field by field. */
typedef struct made {
    uint8_t bytes[4096];
    size_t size;
} made;

static void put(made *message, uint64_t number, size_t byte_count) {
    spice_put(message->bytes + message->size, number, byte_count);
    message->size += byte_count;
}

static void put_rect(made *message, int left, int top, int right, int bottom) {
    put(message, (uint32_t)top, 4);
    put(message, (uint32_t)left, 4);
    put(message, (uint32_t)bottom, 4);
    put(message, (uint32_t)right, 4);
}

static void put_mask(made *message, uint32_t offset) {
    put(message, 0, 1);
    put(message, 0, 8);
    put(message, offset, 4);
}

static const char *take(spice_display *display, uint16_t type, const made *message) {
    const spice_opcode *opcode = spice_opcode_find(spice_display_opcodes, type);
    spice_reader reader = {.body = message->bytes, .size = message->size};
    cr_assert(ne(ptr, opcode, NULL));
    return spice_carry_out(opcode, display, &reader);
}

static const char *create(spice_display *display, uint32_t id, uint32_t width, uint32_t height,
                          uint32_t format) {
    made message = {.size = 0};
    put(&message, id, 4);
    put(&message, width, 4);
    put(&message, height, 4);
    put(&message, format, 4);
    put(&message, id == 0, 4);
    return take(display, SPICE_MSG_DISPLAY_SURFACE_CREATE, &message);
}

/* draw_copy of an image at (left, top) of surface 0, with what stands in `image`. */
static const char *copy(spice_display *display, int left, int top, int width, int height,
                        const made *image) {
    made message = {.size = 0};
    put(&message, 0, 4);
    put_rect(&message, left, top, left + width, top + height);
    put(&message, 0, 1);
    put(&message, message.size + 4 + 16 + 3 + 13, 4);
    put_rect(&message, 0, 0, width, height);
    put(&message, SPICE_ROPD_OP_PUT, 2);
    put(&message, 0, 1);
    put_mask(&message, 0);
    memcpy(message.bytes + message.size, image->bytes, image->size);
    message.size += image->size;
    return take(display, SPICE_MSG_DISPLAY_DRAW_COPY, &message);
}

static void begin_bitmap(made *image, uint8_t format, uint8_t flags, uint32_t width,
                         uint32_t height, uint32_t stride) {
    put(image, 1, 8);
    put(image, SPICE_IMAGE_TYPE_BITMAP, 2);
    put(image, width, 4);
    put(image, height, 4);
    put(image, format, 1);
    put(image, flags, 1);
    put(image, width, 4);
    put(image, height, 4);
    put(image, stride, 4);
    put(image, 0, 4);
}

static uint32_t pixel(const spice_display *display, size_t x, size_t y) {
    spice_reader reader = {.body = display->pixels,
                           .size = (size_t)display->width * display->height * 4};
    reader.at = (y * display->width + x) * 4;
    return spice_read_u32(&reader);
}

static spice_display display;

static void set_up(void) {
    cr_assert(eq(ptr, create(&display, 0, 8, 8, SPICE_SURFACE_FMT_32_xRGB), NULL));
}

static void tear_down(void) {
    spice_display_clear(&display);
}

TestSuite(spice_display, .init = set_up, .fini = tear_down);

static void expect(const char *got, const char *wanted) {
    cr_expect(eq(str, (got ? got : "done"), wanted));
}

Test(spice_display, bitmaps_give_their_colours_whichever_row_comes_first) {
    static const uint32_t upper = 0x123456, lower = 0xabcdef;
    for (uint8_t top_down = 0; top_down < 2; top_down++) {
        made image = {.size = 0};
        /* Rows may be padded, and unaligned. */
        begin_bitmap(&image, SPICE_BITMAP_FMT_32BIT, top_down ? SPICE_BITMAP_FLAGS_TOP_DOWN : 0, 2,
                     2, 9);
        for (size_t row = 0; row < 2; row++) {
            uint32_t color = (row == 0) == (top_down == 1) ? upper : lower;
            put(&image, color, 4);
            put(&image, color, 4);
            put(&image, 0xee, 1);
        }
        expect(copy(&display, 3, 4, 2, 2, &image), "done");
        cr_expect(eq(u32, pixel(&display, 3, 4), upper));
        cr_expect(eq(u32, pixel(&display, 4, 5), lower));
        cr_expect(eq(u32, pixel(&display, 5, 4), 0u));
        cr_expect(eq(u32, pixel(&display, 2, 5), 0u));
    }
}

Test(spice_display, bitmaps_that_are_shorter_than_they_say_are_malformed) {
    static const struct {
        uint32_t width, height, stride;
    } lies[] = {{2, 2, 7},          {2, 2, 9},          {0x40000001, 2, 4},
                {2, 0xffffffff, 8}, {2, 2, 0xffffffff}, {1, 1, 8}};
    for (size_t i = 0; i < sizeof lies / sizeof lies[0]; i++) {
        made image = {.size = 0};
        begin_bitmap(&image, SPICE_BITMAP_FMT_32BIT, 0, lies[i].width, lies[i].height,
                     lies[i].stride);
        put(&image, 0, 8);
        put(&image, 0, 8);
        expect(copy(&display, 0, 0, 2, 2, &image), SPICE_MALFORMED);
    }
    cr_expect(eq(u64, display.draw_count, 0u));
}

static const char *fill(const int box[4], uint8_t clip_type) {
    made message = {.size = 0};
    put(&message, 0, 4);
    put_rect(&message, box[0], box[1], box[2], box[3]);
    put(&message, clip_type, 1);
    put(&message, SPICE_BRUSH_TYPE_SOLID, 1);
    put(&message, 0x00ff00, 4);
    put(&message, SPICE_ROPD_OP_PUT, 2);
    put_mask(&message, 0);
    return take(&display, SPICE_MSG_DISPLAY_DRAW_FILL, &message);
}

Test(spice_display, fills_a_box_without_clips) {
    const int box[4] = {1, 1, 7, 7};
    expect(fill(box, SPICE_CLIP_TYPE_RECTS), "unimpl:clip");
    expect(fill(box, SPICE_CLIP_TYPE_NONE), "done");
    size_t drawn = 0;
    for (size_t i = 0; i < 64; i++) {
        drawn += pixel(&display, i % 8, i / 8) == 0x00ff00;
    }
    cr_expect(eq(sz, drawn, 6u * 6u));
}

Test(spice_display, refuses_boxes_outside_the_surface) {
    const int boxes[][4] = {{-1, 0, 4, 4}, {0, 0, 9, 8},          {0, 0, 8, 9},
                            {0, -1, 4, 4}, {0, 0, 8, 0x7fffffff}, {4, 4, 4, 5}};
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        expect(fill(boxes[i], SPICE_CLIP_TYPE_NONE), SPICE_MALFORMED);
    }
}

Test(spice_display, has_one_surface_of_limited_size) {
    expect(create(&display, 0, 8, 8, SPICE_SURFACE_FMT_32_xRGB), SPICE_MALFORMED);
    expect(create(&display, 1, 8, 8, SPICE_SURFACE_FMT_32_xRGB), "unimpl:surface_offscreen");
    spice_display_clear(&display);
    expect(create(&display, 0, 16385, 1, SPICE_SURFACE_FMT_32_xRGB), SPICE_MALFORMED);
    expect(create(&display, 0, 0, 1, SPICE_SURFACE_FMT_32_xRGB), SPICE_MALFORMED);
    expect(create(&display, 0, 8, 8, SPICE_SURFACE_FMT_16_565), "unimpl:surface_format");
    expect(create(&display, 0, 16384, 2049, SPICE_SURFACE_FMT_32_xRGB), "limit:surfaces");
    expect(create(&display, 0, 1, 1, SPICE_SURFACE_FMT_32_ARGB), "done");
}

Test(spice_display, a_message_that_ends_early_is_malformed_wherever_it_ends) {
    made image = {.size = 0}, message = {.size = 0};
    begin_bitmap(&image, SPICE_BITMAP_FMT_32BIT, 0, 1, 1, 4);
    put(&image, 0xffffff, 4);
    put(&message, 0, 4);
    put_rect(&message, 0, 0, 1, 1);
    put(&message, 0, 1);
    put(&message, message.size + 4 + 16 + 3 + 13, 4);
    put_rect(&message, 0, 0, 1, 1);
    put(&message, SPICE_ROPD_OP_PUT, 3);
    put_mask(&message, 0);
    memcpy(message.bytes + message.size, image.bytes, image.size);
    message.size += image.size;
    expect(take(&display, SPICE_MSG_DISPLAY_DRAW_COPY, &message), "done");
    while (message.size > 0) {
        message.size--;
        expect(take(&display, SPICE_MSG_DISPLAY_DRAW_COPY, &message), SPICE_MALFORMED);
    }
}
