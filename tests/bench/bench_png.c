/*
 * What a screenshot costs: encoding 1920 x 1080 pixels of text, of something like a photograph, and
 * of noise; and what the triggering thread takes for the copy, or for taking the pixels over. As
 * Markdown tables.
 *
 * How the compression was chosen (libpng 1.6.39, zlib 1.2.13, opaque pixels, ms and KiB):
 *
 *     filter, level       text         photograph    noise
 *     none, 1             12   212     86   3795      98   6080
 *     sub, 1              13   227     55   2830      98   6080
 *     sub, 2              13   205     62   2758      98   6080
 *     sub, 3              17   182    129   2648     100   6080
 *     sub, 1, Z_RLE       13   372     41   2355      32   6080
 *     up, 2               16   274     62   2831     100   6080
 *     paeth, 2            21   259     89   2798     128   6080
 *     the best of three   27   248     74   2804     112   6080
 *
 * Z_RLE is faster where there is no text, but screens that are reported have text on them.
 */
#include "image/png.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "report/screenshot.h"

enum { width = 1920, height = 1080, round_count = 5 };

static uint32_t next_random(void) {
    static uint32_t state = 1;
    state = state * 1664525u + 1013904223u;
    return state >> 16;
}

static void set(unsigned char *pixel, unsigned red, unsigned green, unsigned blue) {
    pixel[0] = (unsigned char)red;
    pixel[1] = (unsigned char)green;
    pixel[2] = (unsigned char)blue;
    pixel[3] = 255;
}

/* Panels in flat colours, and lines of glyphs of 8 x 16 pixels with softened edges. */
static void draw_text(unsigned char *pixels) {
    unsigned char glyphs[96][16];
    for (unsigned i = 0; i < sizeof glyphs; i++) {
        glyphs[i / 16][i % 16] = (unsigned char)(next_random() & next_random());
    }
    for (unsigned i = 0; i < width * height; i++) {
        unsigned grey = i % width < 300 ? 40 : i / width < 60 ? 70 : 30;
        set(pixels + (size_t)i * 4, grey, grey + 4, grey + 10);
    }
    for (unsigned line = 0; line < 60; line++) {
        unsigned glyph_count = 20 + next_random() % 180;
        for (unsigned i = 0; i < glyph_count * 16 * 8; i++) {
            unsigned column = i / 128, row = i / 8 % 16, bit = i % 8;
            const unsigned char *glyph = glyphs[(line * 7 + column * column) % 96];
            if ((glyph[row] >> bit & 1) != 0 && row > 2 && row < 13) {
                unsigned grey = bit > 0 && (glyph[row] >> (bit - 1) & 1) != 0 ? 220 : 150;
                size_t y = 70 + line * 16 + row, x = 310 + column * 8 + bit;
                set(pixels + (y * width + x) * 4, grey, grey, grey - 20);
            }
        }
    }
}

static void draw_photograph(unsigned char *pixels) {
    for (unsigned i = 0; i < width * height; i++) {
        unsigned x = i % width, y = i / width;
        set(pixels + (size_t)i * 4, x * 200 / width + next_random() % 5,
            y * 200 / height + next_random() % 5,
            (x + y) * 120 / (width + height) + next_random() % 5);
    }
}

static void draw_noise(unsigned char *pixels) {
    for (size_t i = 0; i < (size_t)width * height * 4; i++) {
        pixels[i] = (unsigned char)next_random();
    }
}

static bugpack_status count_bytes(void *context, const void *bytes, size_t byte_count) {
    (void)bytes;
    *(size_t *)context += byte_count;
    return BUGPACK_OK;
}

static bool measure(const char *name, bp_pixels *pixels, bool is_opaque) {
    pixels->is_opaque = is_opaque;
    uint64_t best_ns = UINT64_MAX;
    size_t byte_count = 0;
    for (unsigned i = 0; i < round_count; i++) {
        byte_count = 0;
        uint64_t start_ns = bp_clock_monotonic_ns();
        if (bp_png_encode(pixels, 0, 0, width, height, count_bytes, &byte_count, NULL) !=
            BUGPACK_OK) {
            return false;
        }
        uint64_t took_ns = bp_clock_monotonic_ns() - start_ns;
        best_ns = took_ns < best_ns ? took_ns : best_ns;
    }
    (void)printf("| %s, %s | %.1f | %zu |\n", name, is_opaque ? "opaque" : "with alpha",
                 (double)best_ns / (double)BP_NS_PER_MS, byte_count / 1024);
    return true;
}

static void ignore(void *context) {
    (void)context;
}

/* What the trigger does with a picture: a copy into memory that the process has not touched before,
 * or taking it over. */
static bool measure_trigger(uint32_t copied_width, uint32_t copied_height, bool is_handed_over) {
    size_t byte_count = (size_t)copied_width * copied_height * 4;
    unsigned char *shown = malloc(byte_count);
    if (shown == NULL) {
        return false;
    }
    memset(shown, 0x55, byte_count);
    const bugpack_picture picture = {
        .pixels = shown, .width = copied_width, .height = copied_height};
    const bugpack_region none = {0, 0, 0, 0};
    _Atomic(uint64_t) held_bytes = 0;
    uint64_t best_ns = UINT64_MAX, worst_ns = 0;
    for (unsigned i = 0; i < round_count * 4; i++) {
        bp_screenshot *screenshot = NULL;
        bp_pixel_owner owner = {is_handed_over ? ignore : NULL, NULL};
        uint64_t start_ns = bp_clock_monotonic_ns();
        if (bp_screenshot_take(&picture, &none, &owner, &held_bytes, &screenshot) != BUGPACK_OK) {
            free(shown);
            return false;
        }
        uint64_t took_ns = bp_clock_monotonic_ns() - start_ns;
        bp_screenshot_free(screenshot);
        best_ns = took_ns < best_ns ? took_ns : best_ns;
        worst_ns = took_ns > worst_ns ? took_ns : worst_ns;
    }
    free(shown);
    (void)printf("| %lu x %lu, %s | %.4f | %.4f |\n", (unsigned long)copied_width,
                 (unsigned long)copied_height, is_handed_over ? "handed over" : "copied",
                 (double)best_ns / (double)BP_NS_PER_MS, (double)worst_ns / (double)BP_NS_PER_MS);
    return true;
}

int main(void) {
    static const struct {
        const char *name;
        void (*draw)(unsigned char *pixels);
    } scenes[] = {{"text", draw_text}, {"photograph", draw_photograph}, {"noise", draw_noise}};
    unsigned char *bytes = malloc((size_t)width * height * 4);
    if (bytes == NULL) {
        return 1;
    }
    bp_pixels pixels = {.bytes = bytes,
                        .width = width,
                        .height = height,
                        .stride_bytes = (size_t)width * 4,
                        .is_bgra = true};
    (void)printf("| 1920 x 1080 | ms | KiB |\n| --- | ---: | ---: |\n");
    bool measured = true;
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        scenes[i].draw(bytes);
        measured = measure(scenes[i].name, &pixels, true) &&
                   measure(scenes[i].name, &pixels, false) && measured;
    }
    free(bytes);
    (void)printf("\n| at the trigger | best ms | worst ms |\n| --- | ---: | ---: |\n");
    for (int is_handed_over = 0; is_handed_over < 2; is_handed_over++) {
        measured = measure_trigger(1280, 720, is_handed_over) &&
                   measure_trigger(1920, 1080, is_handed_over) &&
                   measure_trigger(3840, 2160, is_handed_over) && measured;
    }
    return measured ? 0 : 1;
}
