/*
 * The display: surfaces in memory, and the drawing that can be decoded with certainty (fills,
 * uncompressed bitmaps of 16 to 32 bits, copies inside a surface). All else is a gap.
 */
#ifndef HOSTS_SPICE_DISPLAY_H
#define HOSTS_SPICE_DISPLAY_H

#include "hosts/spice/wire.h"

/* A server may have so many surfaces at a time, of so many pixels in all. */
enum { SPICE_SURFACES_MAX = 64, SPICE_SURFACE_SIDE_MAX = 16384 };
#define SPICE_SURFACE_PIXELS_MAX ((uint64_t)32 << 20)

/* Pixels are words 0x00RRGGBB, or 0xAARRGGBB, in the order of this machine. */
typedef struct spice_surface {
    uint32_t id, width, height;
    uint32_t *pixels; /* NULL: the place is free */
    bool is_primary;
} spice_surface;

typedef struct spice_display {
    spice_surface surfaces[SPICE_SURFACES_MAX];
    uint64_t pixel_count; /* of all surfaces */
    uint64_t draw_count;  /* messages that were drawn, all or nothing of each */
    bool is_marked;       /* the server said that the primary surface is complete */
} spice_display;

extern const spice_opcode spice_display_opcodes[]; /* with a spice_display as their state */

/* The surface that a user sees; NULL if there is none. */
const spice_surface *spice_display_primary(const spice_display *display);

/* Frees all surfaces; the display is as new. */
void spice_display_clear(spice_display *display);

#endif
