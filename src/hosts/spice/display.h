/*
 * The display: the primary surface, fills with a colour, and bitmaps of 32 bits without
 * compression. All else is a gap.
 */
#ifndef HOSTS_SPICE_DISPLAY_H
#define HOSTS_SPICE_DISPLAY_H

#include "hosts/spice/wire.h"

enum { SPICE_SURFACE_SIDE_MAX = 16384, SPICE_SURFACE_PIXELS_MAX = 32 << 20 };

typedef struct spice_display {
    uint8_t *pixels; /* of the primary surface: blue, green, red, and a byte without meaning; NULL:
                        there is none */
    uint32_t width, height;
    uint64_t draw_count; /* messages that were drawn, all or nothing of each */
} spice_display;

extern const spice_opcode spice_display_opcodes[]; /* with a spice_display as their state */

/* Frees the surface; the display is as new. */
void spice_display_clear(spice_display *display);

#endif
