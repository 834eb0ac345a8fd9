/*
 * What bugpack-spice draws of a server's messages, and what it refuses.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <spice/enums.h>

#include "hosts/spice/display.h"

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
    cr_assert(ne(ptr, (void *)(uintptr_t)opcode, NULL));
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
    const spice_surface *surface = spice_display_primary(display);
    return surface->pixels[y * surface->width + x];
}

static spice_display display;

static void set_up(void) {
    cr_assert(eq(ptr, (void *)create(&display, 0, 8, 8, SPICE_SURFACE_FMT_32_xRGB), NULL));
}

static void tear_down(void) {
    spice_display_clear(&display);
}

TestSuite(spice_display, .init = set_up, .fini = tear_down);

static void expect(const char *got, const char *wanted) {
    cr_expect(eq(str, (char *)(got ? got : "done"), (char *)wanted));
}

Test(spice_display, bitmaps_of_every_depth_give_their_colours_whichever_row_comes_first) {
    static const struct {
        uint8_t format;
        size_t pixel_bytes;
        uint32_t upper, lower, first, last;
    } cases[] = {
        {SPICE_BITMAP_FMT_16BIT, 2, 0x7c00, 0x001f, 0xffff0000, 0xff0000ff},
        {SPICE_BITMAP_FMT_16BIT, 2, 0x4210, 0x03e0, 0xff848484, 0xff00ff00},
        {SPICE_BITMAP_FMT_24BIT, 3, 0x123456, 0xabcdef, 0xff123456, 0xffabcdef},
        {SPICE_BITMAP_FMT_32BIT, 4, 0x123456, 0x99abcdef, 0xff123456, 0xffabcdef},
        {SPICE_BITMAP_FMT_RGBA, 4, 0x80123456, 0x00abcdef, 0x80123456, 0x00abcdef},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (uint8_t top_down = 0; top_down < 2; top_down++) {
            made image = {.size = 0};
            size_t stride = 2 * cases[i].pixel_bytes + 1; /* rows may be padded, and unaligned */
            begin_bitmap(&image, cases[i].format, top_down ? SPICE_BITMAP_FLAGS_TOP_DOWN : 0, 2, 2,
                         (uint32_t)stride);
            for (size_t row = 0; row < 2; row++) {
                uint32_t color = (row == 0) == (top_down == 1) ? cases[i].upper : cases[i].lower;
                put(&image, color, cases[i].pixel_bytes);
                put(&image, color, cases[i].pixel_bytes);
                put(&image, 0xee, 1);
            }
            expect(copy(&display, 3, 4, 2, 2, &image), "done");
            cr_expect(eq(u32, pixel(&display, 3, 4), cases[i].first));
            cr_expect(eq(u32, pixel(&display, 4, 5), cases[i].last));
            cr_expect(eq(u32, pixel(&display, 5, 4), 0u));
            cr_expect(eq(u32, pixel(&display, 2, 5), 0u));
        }
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

/* A fill of the box with clips, which are (left, top, right, bottom) each. */
static const char *fill(const int box[4], size_t clip_count, const int (*clips)[4]) {
    made message = {.size = 0};
    put(&message, 0, 4);
    put_rect(&message, box[0], box[1], box[2], box[3]);
    put(&message, SPICE_CLIP_TYPE_RECTS, 1);
    put(&message, clip_count, 4);
    for (size_t i = 0; i < clip_count; i++) {
        put_rect(&message, clips[i][0], clips[i][1], clips[i][2], clips[i][3]);
    }
    put(&message, SPICE_BRUSH_TYPE_SOLID, 1);
    put(&message, 0x00ff00, 4);
    put(&message, SPICE_ROPD_OP_PUT, 2);
    put_mask(&message, 0);
    return take(&display, SPICE_MSG_DISPLAY_DRAW_FILL, &message);
}

Test(spice_display, draws_inside_the_clips_alone) {
    const int box[4] = {1, 1, 7, 7};
    const int clips[][4] = {{-100, -100, 3, 3}, {5, 5, 100, 6}, {7, 7, 7, 7}, {9, 9, 4, 4}};
    expect(fill(box, 4, clips), "done");
    size_t drawn = 0;
    for (size_t i = 0; i < 64; i++) {
        drawn += pixel(&display, i % 8, i / 8) != 0;
    }
    cr_expect(eq(sz, drawn, 2u * 2u + 2u));
    cr_expect(eq(u32, pixel(&display, 6, 5), 0xff00ff00u));
}

Test(spice_display, refuses_clips_that_would_draw_a_box_over_and_over) {
    const int box[4] = {0, 0, 8, 8};
    const int clips[][4] = {{0, 0, 8, 8}, {0, 0, 1, 1}};
    expect(fill(box, 2, clips), SPICE_MALFORMED);
}

Test(spice_display, refuses_boxes_outside_the_surface) {
    const int boxes[][4] = {{-1, 0, 4, 4}, {0, 0, 9, 8},          {0, 0, 8, 9},
                            {0, -1, 4, 4}, {0, 0, 8, 0x7fffffff}, {4, 4, 4, 5}};
    for (size_t i = 0; i < sizeof boxes / sizeof boxes[0]; i++) {
        expect(fill(boxes[i], 0, NULL), SPICE_MALFORMED);
    }
}

Test(spice_display, refuses_more_surfaces_than_there_are_pixels_and_places_for) {
    expect(create(&display, 1, 16385, 1, SPICE_SURFACE_FMT_32_xRGB), SPICE_MALFORMED);
    expect(create(&display, 1, 0, 1, SPICE_SURFACE_FMT_32_xRGB), SPICE_MALFORMED);
    expect(create(&display, 0, 8, 8, SPICE_SURFACE_FMT_32_xRGB), SPICE_MALFORMED);
    expect(create(&display, 1, 8, 8, SPICE_SURFACE_FMT_16_565), "unimpl:surface_format");
    expect(create(&display, 1, 16384, 2048, SPICE_SURFACE_FMT_32_xRGB), "limit:surfaces");
    for (uint32_t id = 1; id < SPICE_SURFACES_MAX; id++) {
        expect(create(&display, id, 1, 1, SPICE_SURFACE_FMT_32_ARGB), "done");
    }
    expect(create(&display, 99, 1, 1, SPICE_SURFACE_FMT_32_xRGB), "limit:surfaces");
    cr_expect(eq(u64, display.pixel_count, 64u + 63u));
}

Test(spice_display, copies_bits_onto_themselves_as_if_by_way_of_a_copy) {
    for (size_t i = 0; i < 64; i++) {
        display.surfaces[0].pixels[i] = (uint32_t)i;
    }
    made message = {.size = 0};
    put(&message, 0, 4);
    put_rect(&message, 1, 1, 8, 8);
    put(&message, 0, 1);
    put(&message, 0, 8);
    expect(take(&display, SPICE_MSG_DISPLAY_COPY_BITS, &message), "done");
    for (size_t y = 1; y < 8; y++) {
        for (size_t x = 1; x < 8; x++) {
            cr_expect(eq(u32, pixel(&display, x, y), (uint32_t)((y - 1) * 8 + x - 1)));
        }
    }
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
